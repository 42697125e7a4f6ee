"""When compiled parts are compared with the reference engine: at once, or when the process has nothing else to do.

While somebody waits for answers, comparisons may take some milliseconds and a share of what the process has computed.
What would take longer waits: a thread looks four times a second at how much the process computes. It begins when that
is little, and not because others have the processors, or when the comparison is a small share of what the process has
computed already; it is not there when nothing waits. A program for all sizes of a call (planning/reference_answers.py)
waits in the same way.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from pocketgraph.budgets import started
from pocketgraph.litert.cost_model import CHECKED_AT_ONCE, CHECKED_SHARE
from pocketgraph.litert.native.fork_safety import keep

LOOK = 0.25  # seconds between two looks
BUSY = 0.2  # processors' worth of work in between, from which a process is at work
MOST_PREEMPTED = 4  # times between two looks that others took its processor: one that is not let work is not idle
MOST = 16  # comparisons that wait; the oldest are dropped, and made by a later process

_waiting: deque[tuple[Callable[[], object], float]] = deque(maxlen=MOST)
_lock = threading.Lock()
_comparing = threading.RLock()  # held while one is made
_spent = 0.0  # seconds
_thread: threading.Thread | None = None


def allows(microseconds: float) -> bool:
    """Whether a comparison of about so long fits: some milliseconds, and a share of what the process has computed."""
    return _spent + microseconds / 1e6 <= CHECKED_AT_ONCE / 1e6 + CHECKED_SHARE * time.process_time()


def spend(seconds: float) -> None:
    """Notes what a comparison took."""
    global _spent
    _spent += seconds


def add(compare: Callable[[], object], microseconds: float) -> None:
    """Leaves something to be done later, which takes about so long."""
    global _thread
    with _lock:
        _waiting.append((compare, microseconds))
        if _thread is None:
            _thread = started(_work, "certificates")  # without one, the next call tries again


def finish() -> None:
    """Does what waits, now, and returns when what another thread had begun is done too."""
    while _first():
        pass


def _first() -> bool:
    with _comparing:
        if not _waiting:
            return False  # the other thread had it
        _waiting.popleft()[0]()  # and nothing holds it when the lock is free: what it compares may be gone then
    return True


def _work() -> None:
    global _thread
    before, preempted = time.process_time(), _preempted()
    while True:
        time.sleep(LOOK)
        with _lock:
            if not _waiting:
                _thread = None
                return
            wanted = _waiting[0][1]
        is_idle = time.process_time() - before < BUSY * LOOK and _preempted() - preempted <= MOST_PREEMPTED
        if is_idle or allows(wanted):
            with contextlib.suppress(Exception):  # a warning that is an error, a model file that is gone
                _first()
                from pocketgraph.runtime.memory_trim import trim_memory

                trim_memory()
        before, preempted = time.process_time(), _preempted()


def _preempted() -> int:
    """How often others have taken a processor from this process that it had work for; 0 where nobody tells."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:
        return 0
    return getrusage(RUSAGE_SELF).ru_nivcsw


atexit.register(_waiting.clear)  # nobody does it any more, and Python need not look through what it holds


def _after_fork() -> None:
    global _thread, _lock, _comparing
    _thread, _lock, _comparing = None, threading.Lock(), threading.RLock()
    keep(_waiting)
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
