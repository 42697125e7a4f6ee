"""Large model files are hashed when the process has nothing else to do, so that later processes know copies of them."""

from __future__ import annotations

import contextlib
import os
import threading
import time

from pocketgraph.litert import digest
from pocketgraph.runtime.certificates import check_schedule

BYTE = 1 / 1000  # µs: about what hashing one takes
GOES_ON = 10.0  # seconds after which a process is none that answers once and ends, however busy the machine is

_asked: set[tuple[str, str | None]] = set()


def hash_when_idle(path: str, cache_dir: str | None) -> None:
    """Sees to it, once in a process, that a file is hashed which was too large to be hashed at once.

    Args:
        path: the file.
        cache_dir: see cache.directory.
    """
    path = os.path.realpath(path)  # the process may be in another directory by then
    if (path, cache_dir) in _asked:
        return
    _asked.add((path, cache_dir))

    def work() -> None:
        from pocketgraph.runtime.background import at_work

        began = time.thread_time()
        with at_work():
            digest.file_digest(path, cache_dir)
        check_schedule.spend(time.thread_time() - began)

    try:
        size = os.path.getsize(path)
    except OSError:
        return
    if size >= digest.LATER_FROM:
        timer = threading.Timer(GOES_ON, check_schedule.add, (work, size * BYTE))
        timer.daemon = True
        with contextlib.suppress(RuntimeError):  # the process is ending, or has too many threads
            timer.start()
