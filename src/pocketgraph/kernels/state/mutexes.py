"""Mutexes, which guard tf.CriticalSection."""

from __future__ import annotations

from dataclasses import dataclass

from pocketgraph.kernels.registry import Context, kernel


@dataclass(eq=False)
class _Mutex:
    """What tf.CriticalSection holds while it runs."""

    name: str


@kernel("MutexV2")
def mutex(*, context: Context, shared_name: str = "") -> _Mutex:
    return context.shared("mutex", shared_name, _Mutex)


@kernel("MutexLock")
def mutex_lock(mutex: _Mutex) -> _Mutex:
    """Marks the beginning of what the mutex guards. One run's nodes go one after the other, and what two runs share,
    variables, has locks of its own; so nobody waits here, and a run that ends early leaves nothing locked."""
    return mutex


kernel("ConsumeMutexLock")(lambda mutex_lock: ())
