"""Queues and session handles: filled and emptied in order, padded, closed, and refused what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import Context, evaluate

FLOAT, INT32 = DType.named("float"), DType.named("int32")


class Store:
    """Nodes run one after another with one state."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def run(self, op: str, *inputs: Any, name: str = "node", **attrs: Any) -> tuple[Any, ...]:
        node = Node(name, op, (), attrs)
        return evaluate(node, inputs, Context(node, self.state))

    def queue(self, op: str = "FIFOQueueV2", shapes: tuple[Shape, ...] = (), **attrs: Any) -> Any:
        return self.run(op, name="queue", component_types=(FLOAT,), shapes=shapes, **attrs)[0]


def numbers(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def test_first_in_first_out() -> None:
    store = Store()
    queue = store.queue()
    store.run("QueueEnqueueV2", queue, numbers(1, 2))
    store.run("QueueEnqueueV2", queue, np.float32(3))
    assert store.run("QueueSizeV2", queue)[0] == 2
    np.testing.assert_array_equal(store.run("QueueDequeueV2", queue)[0], numbers(1, 2))
    np.testing.assert_array_equal(store.run("QueueDequeueV2", queue)[0], np.float32(3))
    assert store.queue() is queue


def test_many_at_once() -> None:
    store = Store()
    queue = store.queue(shapes=(Shape([2]),))
    store.run("QueueEnqueueManyV2", queue, np.arange(6, dtype=np.float32).reshape(3, 2))
    (taken,) = store.run("QueueDequeueManyV2", queue, np.array(2))
    np.testing.assert_array_equal(taken, [[0, 1], [2, 3]])
    assert store.run("QueueSizeV2", queue)[0] == 1


def test_texts_that_are_taken_together_are_texts_in_one_tensor() -> None:
    store = Store()
    text = DType.named("string")
    queue = store.run("FIFOQueueV2", name="queue", component_types=(text,), shapes=(Shape(()),))[0]
    store.run("QueueEnqueueManyV2", queue, np.array([b"red", b"", b"x\0"], object))
    store.run("QueueEnqueueV2", queue, np.array(b"blue", object))
    (taken,) = store.run("QueueDequeueManyV2", queue, np.int32(4))
    assert [type(value) for value in taken] == [bytes] * 4
    assert taken.tolist() == [b"red", b"", b"x\0", b"blue"]


def test_a_padding_queue_fills_up_with_zeros() -> None:
    store = Store()
    queue = store.queue("PaddingFIFOQueueV2", shapes=(Shape([None]),))
    store.run("QueueEnqueueV2", queue, numbers(1))
    store.run("QueueEnqueueV2", queue, numbers(2, 3, 4))
    (taken,) = store.run("QueueDequeueManyV2", queue, np.array(2))
    np.testing.assert_array_equal(taken, [[1, 0, 0], [2, 3, 4]])


def test_a_closed_queue_gives_its_rest() -> None:
    store = Store()
    queue = store.queue(shapes=(Shape([]),))
    store.run("QueueEnqueueManyV2", queue, numbers(1, 2, 3))
    assert not store.run("QueueIsClosedV2", queue)[0]
    store.run("QueueCloseV2", queue)
    assert store.run("QueueIsClosedV2", queue)[0]
    np.testing.assert_array_equal(store.run("QueueDequeueUpToV2", queue, np.array(5))[0], [1, 2, 3])
    with pytest.raises(RunError, match="is closed and has insufficient elements"):
        store.run("QueueDequeueV2", queue)
    with pytest.raises(RunError, match="is closed"):
        store.run("QueueEnqueueV2", queue, np.float32(1))


@pytest.mark.parametrize(
    ("op", "values", "words"),
    [
        ("QueueEnqueueV2", (numbers(1, 2, 3),), "Shape mismatch"),
        ("QueueEnqueueV2", (np.array([1, 2]),), "takes float"),
        ("QueueEnqueueV2", (numbers(1, 2), numbers(1, 2)), "takes 1 components"),
        ("QueueEnqueueManyV2", (np.zeros((4, 2), np.float32),), "no room"),
        ("QueueEnqueueManyV2", (np.float32(1),), "unlike first sizes"),
        ("QueueDequeueV2", (), "too few elements"),
        ("QueueDequeueManyV2", (np.array(1),), "too few elements"),
        ("QueueDequeueManyV2", (np.array(-1),), "< 0"),
    ],
)
def test_what_does_not_fit_is_refused(op: str, values: tuple[Any, ...], words: str) -> None:
    store = Store()
    queue = store.queue(shapes=(Shape([2]),), capacity=3)
    with pytest.raises(RunError, match=words):
        store.run(op, queue, *values)


def test_two_queues_of_one_name_must_agree() -> None:
    store = Store()
    store.queue(shared_name="q")
    with pytest.raises(RunError, match="component types"):
        store.run("FIFOQueueV2", name="other", component_types=(INT32,), shared_name="q")


def test_a_fifo_queue_wants_whole_shapes() -> None:
    with pytest.raises(RunError, match="fully defined"):
        Store().queue(shapes=(Shape([None]),))


def test_a_graph_fills_a_queue_in_one_run_and_empties_it_in_another() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        queue = FIFOQueueV2(component_types=[float], shapes=[[2]])
        put = QueueEnqueueV2(queue, x, Tcomponents=[float])
        take = QueueDequeueV2(queue, component_types=[float])
        twice = AddV2(take, take, T=float)
    """)
    with Session(graph) as session:
        for start in (1.0, 10.0):
            session.run([], {"x": numbers(start, start)}, targets=["put"])
        for start in (1.0, 10.0):
            np.testing.assert_array_equal(session.run("twice")[0], [2 * start, 2 * start])
        with pytest.raises(RunError, match="too few elements"):
            session.run("twice")


def test_a_tensor_stays_in_the_session() -> None:
    store = Store()
    (handle,) = store.run("GetSessionHandle", numbers(1, 2))
    np.testing.assert_array_equal(store.run("GetSessionTensor", handle, dtype=FLOAT)[0], numbers(1, 2))
    with pytest.raises(RunError, match="not int32"):
        store.run("GetSessionTensor", handle, dtype=INT32)
    store.run("DeleteSessionTensor", handle)
    with pytest.raises(RunError, match="not in the session store"):
        store.run("GetSessionTensor", handle, dtype=FLOAT)
