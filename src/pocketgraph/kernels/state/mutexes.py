"""Mutexes, which guard tf.CriticalSection."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pocketgraph.budgets import check_time
from pocketgraph.kernels.registry import Context, kernel

LOOK = 0.1  # seconds between two looks at a deadline
SECTIONS = "critical sections"


@dataclass(eq=False)
class _Mutex:
    """What tf.CriticalSection holds while it runs."""

    name: str


class _Gate:
    """One run of a session at a time is in critical sections, whatever their mutexes.

    A run's nodes go one after the other, in any order that their inputs allow, so that one may take a second mutex
    before it gives the first one back: with a lock for each, two runs could wait for each other.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()


class _RunInside:
    """A run that is, or was, in critical sections; ``count`` of them now."""

    def __init__(self, gate: _Gate) -> None:
        self._gate = gate
        self.count = 0

    def enter(self) -> None:
        """Waits for another run to leave its own.

        Raises:
            DeadlineError: that takes too long.
        """
        while not self.count and not self._gate.lock.acquire(timeout=LOOK):
            check_time("while another run was in a critical section")
        self.count += 1

    def leave(self, sections: int = 1) -> None:
        """Leaves so many of them."""
        if self.count:
            self.count -= sections
            if not self.count:
                self._gate.lock.release()


@kernel("MutexV2")
def mutex(*, context: Context, shared_name: str = "") -> _Mutex:
    return context.shared("mutex", shared_name, _Mutex)


@kernel("MutexLock")
def mutex_lock(mutex: _Mutex, *, context: Context) -> _RunInside:
    """Begins what a mutex guards; it ends where its ConsumeMutexLock runs, or else with the run."""
    run: _RunInside | None = context.step.get(SECTIONS)
    if run is None:
        run = context.step[SECTIONS] = _RunInside(context.shared(SECTIONS, "all", lambda _: _Gate()))
        context.at_end(lambda: run.leave(run.count))
    run.enter()
    return run


@kernel("ConsumeMutexLock")
def consume_mutex_lock(mutex_lock: _RunInside) -> tuple[()]:
    mutex_lock.leave()
    return ()
