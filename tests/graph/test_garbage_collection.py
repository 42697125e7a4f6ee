"""The cyclic collector, paused while much is made that stays."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from pocketgraph.graph import garbage_collection
from pocketgraph.graph.garbage_collection import collector_paused


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(garbage_collection, "_promotions", 0)
    gc.unfreeze()
    gc.enable()
    gc.collect(1)
    yield
    gc.enable()
    gc.freeze()


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_what_is_made_in_a_first_pause_is_old_without_a_search() -> None:
    searches: list[int] = []
    note = lambda phase, info: searches.append(info["generation"])  # noqa: E731
    gc.callbacks.append(note)
    try:
        with collector_paused():
            made = [[number] for number in range(20_000)]
            assert not gc.isenabled()
        more = [[number] for number in range(100)]
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert not searches
    old = {id(each) for each in gc.get_objects(generation=2)}
    assert id(made[5_000]) in old
    assert id(more[-1]) not in old
    assert gc.get_freeze_count() == 0


def test_garbage_that_was_promoted_is_found_later() -> None:
    with collector_paused():
        made = [Cycle() for _ in range(5_000)]
        lost = weakref.ref(made[7])
        del made
    assert lost() is not None
    gc.collect()
    assert lost() is None


def test_it_is_done_a_few_times_in_a_process_only() -> None:
    kept = []
    for _ in range(3 * garbage_collection.FIRST_PAUSES):
        with collector_paused():
            kept.append([[number] for number in range(5_000)])
    assert garbage_collection._promotions == garbage_collection.FIRST_PAUSES


def test_what_somebody_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collector_paused():
            kept = [[number] for number in range(5_000)]
        assert gc.get_freeze_count() >= frozen - 100  # objects of others come and go
        assert garbage_collection._promotions == 0
        assert len(kept) == 5_000
    finally:
        gc.unfreeze()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        kept = [[number] for number in range(5_000)]
    assert not gc.isenabled()
    assert garbage_collection._promotions == 0
    assert len(kept) == 5_000
