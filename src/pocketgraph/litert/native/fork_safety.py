"""LiteRT's objects that live, so that a forked process does not free them.

To free one takes threads that were left in the other process; without them native code waits for ever, or crashes. So
what the other process holds stays alive, and what it had let go of is kept from the collector, whoever made it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from typing import TypeVar
from weakref import WeakSet

Native = TypeVar("Native")

_living: WeakSet[object] = WeakSet()


def kept_over_fork(native: Native) -> Native:
    """Notes an interpreter or a model of LiteRT's package, as long as somebody holds it, and gives it back."""
    _living.add(getattr(native, "_interpreter", None) or native)  # the compiled object outlives its thin cover
    return native


def keep(items: Iterable[object]) -> None:
    """Keeps, in a forked process, what holds LiteRT's or another engine's objects of the other one.

    Each gets a reference that nobody gives back: a list would let go of them when Python clears modules at the end.
    """
    import ctypes

    for item in items:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))


def _after_fork() -> None:
    keep(_living)
    gc.freeze()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
