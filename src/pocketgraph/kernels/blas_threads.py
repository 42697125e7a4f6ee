"""How many threads NumPy's products of matrices take, where NumPy comes with OpenBLAS, as its wheels do.

By itself that is one for each processor, which wait for each other in loops: where another program has one of these,
a product of a vector takes twenty times as long. The number is the process's; whoever sets it does so for a short time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

SET, GET = "scipy_openblas_set_num_threads64_", "scipy_openblas_get_num_threads64_"

_lock = threading.Lock()
_limits: list[int] = []
_before = 1


@contextlib.contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Within this block products take no more threads; where several blocks run at once, the least of their numbers."""
    global _before
    library = _library()
    if library is None:
        yield
        return
    with _lock:
        if not _limits:
            _before = getattr(library, GET)()
        _limits.append(threads)
        getattr(library, SET)(min((*_limits, _before)))
    try:
        yield
    finally:
        with _lock:
            _limits.remove(threads)
            getattr(library, SET)(min((*_limits, _before)))


def used() -> int:
    """How many threads products take now; 0 where nobody knows."""
    library = _library()
    return 0 if library is None else int(getattr(library, GET)())


@lru_cache(maxsize=1)
def _library() -> Any:
    """OpenBLAS as NumPy has loaded it; None where it has another one."""
    try:
        library = ctypes.CDLL(str(import_module("numpy._core._multiarray_umath").__file__))
        return library if hasattr(library, SET) and hasattr(library, GET) else None
    except (ImportError, OSError, AttributeError):
        return None


def _after_fork() -> None:
    global _lock
    if _limits:
        getattr(_library(), SET)(_before)
    _lock = threading.Lock()
    _limits.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
