"""One text alone stays a text: NumPy would make an array of bytes of it, which loses zeros at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.registry import Context

TEXTS = np.array([b"ab\x00", b"", b"c"], object)
STRING, INT = DType.named("string"), DType.named("int32")


def text(value: Any) -> tuple[Any, ...]:
    assert isinstance(value, np.ndarray)
    return value.dtype, value.shape, value.item()


def test_a_text_out_of_a_list() -> None:
    scalar = np.zeros(0, np.int32)
    made = Node("l", "TensorListFromTensor", (), {"element_dtype": STRING, "shape_type": INT})
    (held,) = evaluate(made, (TEXTS, scalar))
    (item,) = evaluate(Node("g", "TensorListGetItem", (), {"element_dtype": STRING}), (held, np.int32(0), scalar))
    assert text(item) == (object, (), b"ab\x00")


def test_a_text_out_of_a_tensor_array() -> None:
    attrs = {"dtype": STRING, "element_shape": Shape(None)}
    made = Node("a", "TensorArrayV3", (), attrs)
    context = Context(made)
    handle, flow = evaluate(made, (np.int32(3),), context)
    scattered = Node("s", "TensorArrayScatterV3", (), {"T": STRING})
    (flow,) = evaluate(scattered, (handle, np.arange(3, dtype=np.int32), TEXTS, flow), context)
    (item,) = evaluate(Node("r", "TensorArrayReadV3", (), {"dtype": STRING}), (handle, np.int32(0), flow), context)
    assert text(item) == (object, (), b"ab\x00")


@pytest.mark.parametrize("op", ["FIFOQueueV2", "PaddingFIFOQueueV2"])
def test_texts_that_are_queued_one_by_one(op: str) -> None:
    made = Node("q", op, (), {"component_types": (STRING,), "shapes": (Shape(()),), "capacity": 5})
    context = Context(made)
    (queue,) = evaluate(made, (), context)
    evaluate(Node("e", "QueueEnqueueManyV2", (), {"Tcomponents": (STRING,)}), (queue, TEXTS), context)
    (item,) = evaluate(Node("d", "QueueDequeueV2", (), {"component_types": (STRING,)}), (queue,), context)
    assert text(item) == (object, (), b"ab\x00")


def test_a_place_that_was_not_set_is_an_empty_text() -> None:
    made = Node("l", "TensorListScatterV2", (), {"element_dtype": STRING, "shape_type": INT})
    (held,) = evaluate(made, (TEXTS[:1], np.int32([1]), np.zeros(0, np.int32), np.int32(2)))
    stack = Node("s", "TensorListStack", (), {"element_dtype": STRING})
    assert evaluate(stack, (held, np.zeros(0, np.int32)))[0].tolist() == [b"", b"ab\x00"]
    assert evaluate(Node("e", "Empty", (), {"dtype": STRING}), (np.int32([2]),))[0].tolist() == [b"", b""]
