"""Processes that measure engines do so one after the other: at once, each would measure what the others leave."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

LOOKS = 0.1  # seconds, after which is looked again whether they have ended


@contextlib.contextmanager
def turn(folder: str, waits: float) -> Iterator[bool]:
    """Keeps other processes with the same cache directory from measuring meanwhile.

    Args:
        folder: the cache directory.
        waits: seconds to wait for those that do.

    Yields:
        Whether nobody else measures, as far as the system tells.
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
