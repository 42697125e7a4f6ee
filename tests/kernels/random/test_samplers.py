"""Seeded candidate samplers, shuffling queues and generators draw what TensorFlow draws, run after run."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import Context, evaluate
from pocketgraph.kernels.state.variables import Variable

GOLDEN = json.loads((pathlib.Path(__file__).parents[2] / "fixtures" / "samplers.json").read_text())
INT32 = DType.named("int32")


@pytest.mark.parametrize("case", GOLDEN["samplers"], ids=lambda c: f"{c['op']}-{c['attrs']['unique']}")
def test_the_same_classes_and_expected_counts(case: dict[str, Any]) -> None:
    attrs = {name: tuple(v) if isinstance(v, list) else v for name, v in case["attrs"].items()}
    node = Node("sampler", case["op"], (), attrs)
    context = Context(node)
    for expected in case["runs"]:
        classes, of_true, of_drawn = evaluate(node, [np.array(GOLDEN["true"])], context)
        assert (classes.dtype, of_true.dtype, of_drawn.dtype) == (np.int64, np.float32, np.float32)
        assert classes.tolist() == expected[0]
        np.testing.assert_allclose(of_true, expected[1], rtol=4e-7)
        np.testing.assert_allclose(of_drawn, expected[2], rtol=4e-7)


def test_every_class_once() -> None:
    node = Node("sampler", "AllCandidateSampler", (), {"num_true": 1, "num_sampled": 4, "unique": True})
    classes, of_true, of_drawn = evaluate(node, [np.array([[2], [0]])])
    assert (classes.tolist(), of_true.tolist(), of_drawn.tolist()) == ([0, 1, 2, 3], [[1.0], [1.0]], [1.0] * 4)


def test_accidental_hits() -> None:
    node = Node("hits", "ComputeAccidentalHits", (), {"num_true": 2})
    rows, places, weights = evaluate(node, [np.array([[1, 3], [0, 9]]), np.array([3, 0, 0, 3])])
    assert (rows.tolist(), places.tolist()) == ([0, 1], [3, 2])
    assert weights.tolist() == [np.finfo(np.float32).min] * 2
    assert (rows.dtype, places.dtype, weights.dtype) == (np.int32, np.int64, np.float32)


@pytest.mark.parametrize(
    ("attrs", "classes", "message"),
    [
        ({"num_sampled": 11, "unique": True, "range_max": 10}, [[1]], "too small"),
        ({"num_sampled": 0, "unique": False, "range_max": 10}, [[1]], "num_sampled"),
        ({"num_sampled": 2, "unique": False, "range_max": 10}, [[1, 2]], "columns"),
        ({"num_sampled": 2, "unique": False, "range_max": 10}, [[10]], "outside"),
    ],
)
def test_what_samplers_refuse(attrs: dict[str, Any], classes: list[list[int]], message: str) -> None:
    node = Node("sampler", "LogUniformCandidateSampler", (), {"num_true": 1, "seed": 1, **attrs})
    with pytest.raises(RunError, match=message):
        evaluate(node, [np.array(classes)], Context(node))


@pytest.mark.parametrize("case", GOLDEN["queues"], ids=lambda c: str(c["seeds"]))
def test_a_shuffling_queue_gives_them_in_the_same_order(case: dict[str, Any]) -> None:
    seeds = {"seed": case["seeds"][0], "seed2": case["seeds"][1]}
    attrs = {"component_types": (INT32,), "shapes": (Shape([]),), **seeds}
    node = Node("queue", "RandomShuffleQueueV2", (), attrs)
    queue = evaluate(node, [], Context(node))[0]
    evaluate(Node("put", "QueueEnqueueManyV2"), [queue, np.arange(100, dtype=np.int32)])
    order = [int(evaluate(Node("take", "QueueDequeueV2"), [queue])[0]) for _ in range(5)]
    order += evaluate(Node("take", "QueueDequeueManyV2"), [queue, np.array(70)])[0].tolist()
    assert order == case["order"]


def test_a_shuffling_queue_keeps_some_until_it_is_closed() -> None:
    attrs = {"component_types": (INT32,), "shapes": (Shape([]),), "min_after_dequeue": 3, "capacity": 5}
    node = Node("queue", "RandomShuffleQueueV2", (), attrs)
    queue = evaluate(node, [], Context(node))[0]
    evaluate(Node("put", "QueueEnqueueManyV2"), [queue, np.arange(4, dtype=np.int32)])
    first = evaluate(Node("take", "QueueDequeueV2"), [queue])[0]
    with pytest.raises(RunError, match="too few"):
        evaluate(Node("take", "QueueDequeueV2"), [queue])
    evaluate(Node("close", "QueueCloseV2"), [queue])
    rest = evaluate(Node("take", "QueueDequeueUpToV2"), [queue, np.array(9)])[0]
    assert sorted([int(first), *rest.tolist()]) == [0, 1, 2, 3]
    with pytest.raises(RunError, match="min_after_dequeue"):
        bad = Node("other", "RandomShuffleQueueV2", (), {**attrs, "min_after_dequeue": 5})
        evaluate(bad, [], Context(bad))


def test_a_priority_queue_gives_the_smallest_first() -> None:
    node = Node("queue", "PriorityQueueV2", (), {"component_types": (INT32,), "shapes": (Shape([]),)})
    queue = evaluate(node, [], Context(node))[0]
    numbers, values = np.array([5, -1, 5, 0], np.int64), np.arange(4, dtype=np.int32)
    evaluate(Node("put", "QueueEnqueueManyV2"), [queue, numbers, values])
    taken = evaluate(Node("take", "QueueDequeueManyV2"), [queue, np.array(3)])
    assert [v.tolist() for v in taken] == [[-1, 0, 5], [1, 3, 0]]
    assert int(evaluate(Node("size", "QueueSizeV2"), [queue])[0]) == 1
    with pytest.raises(RunError, match="takes 2 components"):
        evaluate(Node("put", "QueueEnqueueV2"), [queue, np.int32(1)])


def test_generators_draw_the_same_and_move_on_the_same() -> None:
    held = Variable("state", DType.named("int64"), resource=True)
    held.assign(np.array(GOLDEN["state"], np.int64))
    for case in GOLDEN["draws"]:
        dtype = DType.named(case["dtype"])
        given = [np.array(v, dtype.numpy if n in ("minval", "maxval") else np.int64) for n, v in case["inputs"].items()]
        node = Node("draw", case["op"], (), {"dtype": dtype})
        found = evaluate(node, [held, np.array(1, np.int64), *given])
        np.testing.assert_allclose(found[0].ravel() if found else [], case["numbers"], rtol=2e-6, err_msg=case["op"])
        assert held.read().tolist() == case["state"], case["op"]


def test_a_generator_needs_a_state_and_an_algorithm() -> None:
    held = Variable("state", DType.named("int64"), resource=True)
    node = Node("draw", "StatefulUniform", (), {"dtype": DType.named("float")})
    held.assign(np.zeros(2, np.int64))
    with pytest.raises(RunError, match="state of a Philox generator"):
        evaluate(node, [held, np.array(1), np.array([2])])
    held.assign(np.zeros(3, np.int64))
    with pytest.raises(RunError, match="algorithm"):
        evaluate(node, [held, np.array(2), np.array([2])])
