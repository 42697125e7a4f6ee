"""Work that Ctrl-C does not leave half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keeps a Ctrl-C back until the block has ended: what handles it, such as by KeyboardInterrupt, is called then.

    Only the main thread is interrupted; in another one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # the system's, which ends the process, or one that is not Python's
        yield
        return
    try:
        signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])
