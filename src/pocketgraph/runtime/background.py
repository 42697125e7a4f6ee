"""Work in threads that nobody waits for: one piece at a time, and ended early when the process ends.

A process must not end while native code is at work in another thread: it would run into what is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator
from functools import lru_cache

from pocketgraph.budgets import Deadline, limits

LONGEST = 600_000  # milliseconds
LAST_WAIT = 60.0  # seconds that the end of the process waits for a piece that does not look at the time

_busy = threading.Lock()
_running: list[Deadline] = []


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """Waits for what else is at work. What goes wrong inside is nobody's affair, and ends the block."""
    _wait_at_exit()
    deadline = Deadline(LONGEST)
    with _busy, contextlib.suppress(Exception), limits(deadline):
        _running.append(deadline)
        try:
            yield
        finally:
            _running.remove(deadline)


@lru_cache(maxsize=1)
def _wait_at_exit() -> None:
    atexit.register(_end)


def _end() -> None:
    for deadline in tuple(_running):
        deadline.expire()
    _busy.acquire(timeout=LAST_WAIT)


def _after_fork() -> None:
    global _busy
    _busy = threading.Lock()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
