"""Processes take turns at a folder: those that measure engines at once would each measure what the others leave, and
those that ship into one would take each other's files away."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

LOOKS = 0.1  # seconds, after which is looked again whether they have ended


@contextlib.contextmanager
def turn(folder: str, waits: float, told: Callable[[], object] = bool) -> Iterator[bool]:
    """Keeps other processes that take turns at the same folder back meanwhile.

    Args:
        folder: of both, such as the cache directory.
        waits: seconds to wait for another one's turn to end.
        told: called when there is one, before it is waited for.

    Yields:
        Whether nobody else has a turn, as far as the system tells.
    """
    try:
        import fcntl

        place = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield True
        return
    ends, is_ours = time.monotonic() + waits, False
    try:
        while True:
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_ours = True
            except BlockingIOError:
                told()
                told = bool
                if time.monotonic() < ends:
                    time.sleep(LOOKS)
                    continue
            except OSError:
                is_ours = True  # a file system without locks
            break
        yield is_ours
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_UN)  # a process that was forked meanwhile holds it, too
        os.close(place)
