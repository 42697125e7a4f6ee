"""Staging areas and barriers: what is put aside comes back whole, in order or by key, and what cannot is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import Context, evaluate

FLOAT, INT32 = DType.named("float"), DType.named("int32")
TYPES = {"dtypes": (FLOAT, INT32), "shared_name": "area"}


class Store:
    """Nodes run one after another with one state."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def run(self, op: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
        node = Node("node", op, (), attrs)
        return evaluate(node, inputs, Context(node, self.state))


def text(*words: bytes) -> np.ndarray[Any, Any]:
    return np.array(words, object)


def whole(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def test_first_staged_first_unstaged() -> None:
    store = Store()
    for number in (1, 2, 3):
        store.run("Stage", np.float32(number), np.int32(-number), **TYPES)
    assert store.run("StageSize", **TYPES)[0] == 3
    assert store.run("StagePeek", np.int32(1), **TYPES) == (2.0, -2)
    assert store.run("Unstage", **TYPES) == (1.0, -1)
    store.run("StageClear", **TYPES)
    with pytest.raises(RunError, match="is empty"):
        store.run("Unstage", **TYPES)


def test_a_staging_area_has_limits() -> None:
    store = Store()
    store.run("Stage", np.zeros(4, np.float32), np.int32(0), capacity=1, **TYPES)
    with pytest.raises(RunError, match="full"):
        store.run("Stage", np.zeros(4, np.float32), np.int32(0), capacity=1, **TYPES)
    with pytest.raises(RunError, match="30 bytes"):
        store.run("Stage", np.zeros(4, np.float32), np.int32(0), memory_limit=30, **TYPES)
    with pytest.raises(RunError, match="none is at 1"):
        store.run("StagePeek", np.int32(1), **TYPES)


def test_parts_meet_under_their_key() -> None:
    store = Store()
    key = np.int64
    store.run("OrderedMapStage", key(9), whole(1), np.int32(90), **TYPES)
    assert store.run("OrderedMapIncompleteSize", **TYPES)[0] == 1
    store.run("OrderedMapStage", key(4), whole(0, 1), np.float32(4), np.int32(40), **TYPES)
    store.run("OrderedMapStage", key(9), whole(0), np.float32(9), **TYPES)
    assert store.run("OrderedMapSize", **TYPES)[0] == 2
    assert store.run("OrderedMapPeek", key(9), whole(1, 0), **TYPES) == (90, 9.0)
    assert store.run("OrderedMapUnstageNoKey", whole(0, 1), **TYPES) == (4, 4.0, 40)
    assert store.run("OrderedMapUnstage", key(9), whole(0), **TYPES) == (9.0,)
    assert store.run("OrderedMapUnstage", key(9), whole(1), **TYPES) == (90,)
    with pytest.raises(RunError, match="no complete element"):
        store.run("OrderedMapUnstage", key(9), whole(1), **TYPES)


@pytest.mark.parametrize(
    ("places", "values", "message"),
    [((0,), (1.0, 2), "2 values"), ((2,), (1.0,), "places"), ((1,), (2,), "already")],
)
def test_what_a_map_refuses(places: tuple[int, ...], values: tuple[Any, ...], message: str) -> None:
    store = Store()
    store.run("MapStage", np.int64(1), whole(1), np.int32(7), **TYPES)
    with pytest.raises(RunError, match=message):
        store.run("MapStage", np.int64(1), whole(*places), *(np.asarray(v) for v in values), **TYPES)


def test_a_barrier_gives_what_is_complete_oldest_first() -> None:
    store = Store()
    handle = store.run("Barrier", component_types=(FLOAT, INT32), shapes=(Shape([2]), Shape([])))[0]
    store.run("BarrierInsertMany", handle, text(b"a", b"b", b"c"), np.ones((3, 2), np.float32), component_index=0)
    store.run("BarrierInsertMany", handle, text(b"c", b"a"), whole(3, 1), component_index=1)
    assert store.run("BarrierReadySize", handle)[0] == 2
    assert store.run("BarrierIncompleteSize", handle)[0] == 1
    numbers, keys, floats, ints = store.run(
        "BarrierTakeMany", handle, np.int32(2), component_types=(FLOAT, INT32), allow_small_batch=False
    )
    assert numbers.tolist() == [-(2**63)] * 2  # both came with the first insertion
    assert keys.tolist() == [b"c", b"a"]  # as they became complete
    assert floats.shape == (2, 2)
    assert ints.tolist() == [3, 1]


def test_what_a_barrier_refuses() -> None:
    store = Store()
    handle = store.run("Barrier", component_types=(INT32,), shapes=(Shape([]),))[0]
    types = {"component_types": (INT32,)}
    with pytest.raises(RunError, match="too few"):
        store.run("BarrierTakeMany", handle, np.int32(1), **types)
    store.run("BarrierInsertMany", handle, text(b"a"), whole(1), component_index=0)
    with pytest.raises(RunError, match="out of range"):
        store.run("BarrierInsertMany", handle, text(b"a"), whole(1), component_index=1)
    with pytest.raises(RunError, match="shape"):
        store.run("BarrierInsertMany", handle, text(b"b"), np.ones((1, 2), np.int32), component_index=0)
    store.run("BarrierClose", handle)
    with pytest.raises(RunError, match="closed"):
        store.run("BarrierInsertMany", handle, text(b"new"), whole(1), component_index=0)
    taken = store.run("BarrierTakeMany", handle, np.int32(5), allow_small_batch=True, **types)
    assert taken[1].tolist() == [b"a"]
    with pytest.raises(RunError, match="capacity"):
        store.run("Barrier", component_types=(INT32,), capacity=3, shared_name="other")
