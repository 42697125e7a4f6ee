"""Keeps LiteRT's start-up notes from the user, but not what native code says before it ends the process."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

_stderr = threading.Lock()
_kept: list[int] = []  # what stderr is while messages are kept
ABORT = 6  # SIGABRT
NOTES = b"INFO:"  # what lines that nobody needs begin with
MOST = 1 << 16  # bytes of messages that are passed on


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps what LiteRT writes to the process's stderr itself from the user; where it aborts, the user sees it.

    Several threads may be in it at once.
    """
    global _inside, _until_all_are_out
    with _stderr:
        if not _inside:
            _until_all_are_out = contextlib.ExitStack()
            _until_all_are_out.enter_context(_redirected())
        _inside += 1
    try:
        yield
    finally:
        with _stderr:
            _inside -= 1
            if not _inside:
                _until_all_are_out.close()


_inside = 0
_until_all_are_out = contextlib.ExitStack()


@contextlib.contextmanager
def _redirected() -> Iterator[None]:
    try:
        kept = os.dup(2)
    except OSError:
        yield
        return
    _kept.append(kept)
    try:
        sink = _sink()
        os.dup2(sink, 2)
        with _passed_on_at_abort(sink, kept):
            yield
        if threading.active_count() > 1:  # others may have written meanwhile
            _pass_on(sink, kept, of_others=True)
        os.close(sink)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        _kept.clear()


def _in_forked_process() -> None:
    """Another thread may have been in ``quiet``, which is not here to end it."""
    global _stderr, _inside
    _stderr, _inside = threading.Lock(), 0
    if _kept:
        os.dup2(_kept.pop(), 2)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_process)


def _sink() -> int:
    """Where messages go: memory that can be read again, where the system has it."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.memfd_create("messages")
    return os.open(os.devnull, os.O_WRONLY)


def _pass_on(sink: int, kept: int, *, of_others: bool = False) -> None:
    """Writes the messages of ``sink``, but for notes, to ``kept``; only those that are not native code's where they are
    to be ``of_others``."""
    with contextlib.suppress(OSError):
        size = os.lseek(sink, 0, os.SEEK_END)
        os.lseek(sink, max(0, size - MOST), os.SEEK_SET)
        lines = os.read(sink, MOST).splitlines(keepends=True)
        is_left_out = _is_native if of_others else lambda line: line.startswith(NOTES)
        os.write(kept, b"".join(line for line in lines if not is_left_out(line)))


def _is_native(line: bytes) -> bool:
    """Whether a line looks like LiteRT's own: ``INFO: …``, ``… [file.cc:34] …``."""
    return line.startswith((b"INFO: ", b"WARNING: ", b"ERROR: ", b"VERBOSE: ")) or b".cc:" in line


@contextlib.contextmanager
def _passed_on_at_abort(sink: int, kept: int) -> Iterator[None]:
    """Passes the messages on when native code aborts.

    Python's own handlers run when native code has come back, which it does not; so this is one of the C library's,
    called in the thread that aborts. It stands only while a model is opened, which the calling thread does alone.
    """
    library = _c_library()
    if library is None:
        yield
        return
    import ctypes

    ends: Any = ctypes.CFUNCTYPE(None, ctypes.c_int)
    before: list[int | None] = []

    def tell(number: int) -> None:
        _pass_on(sink, kept)
        os.dup2(kept, 2)
        if before[0] and before[0] > 1:  # neither the default nor to be ignored: faulthandler's, say
            ends(before[0])(number)

    handler = ends(tell)
    before.append(library.signal(ABORT, handler))
    try:
        yield
    finally:
        library.signal(ABORT, before[0])


@lru_cache(maxsize=1)
def _c_library() -> Any:
    """The C library, None where it has no ``signal`` of the usual kind."""
    try:
        import ctypes

        library: Any = ctypes.CDLL(None)
        call: Callable[..., Any] = library.signal
        call.restype = ctypes.c_void_p  # type: ignore[attr-defined]
        call.argtypes = (ctypes.c_int, ctypes.c_void_p)  # type: ignore[attr-defined]
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    return library
