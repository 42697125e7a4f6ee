"""Python's search for garbage in cycles, paused while a large graph is built."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 2_000  # young objects, of which looking for garbage among them takes a part of a millisecond
FIRST_PAUSES = 4  # of a process: what is made in them are modules, a graph and its plan, which stay

_promotions = 0


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the cyclic collector; it goes on afterwards if it was on before.

    Nodes hold no cycles and all stay, but there are so many that they would be looked at again and again: half of the
    time at 10,000 nodes, and a growing part above. What is no longer used is still freed at once.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            promote_young()
            gc.enable()


def promote_young() -> None:
    """Counts what was made so far among what is old, so that no first result waits until it was looked at.

    Done a few times in a process only: what is promoted does not bring the next search among what is old nearer.
    """
    global _promotions
    if _promotions >= FIRST_PAUSES or gc.get_count()[0] < MANY or gc.get_freeze_count():
        return
    _promotions += 1
    gc.freeze()  # of all generations one, without looking at anything
    gc.unfreeze()
