"""Gradients of lists of tensors, as loops of TensorFlow 2 keep them: lists of the gradients of their elements.

Source: tensorflow/python/ops/list_ops.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import INT32

not_differentiable("TensorListReserve", "EmptyTensorList", "TensorListLength", "TensorListElementShape")


def _sizes(op: NodeGradient, ref: str) -> str:
    """The shape of the elements of a list."""
    return op.add("TensorListElementShape", ref, shape_type=INT32)


@gradient("TensorListGetItem")
def get_item(op: NodeGradient) -> Sequence[str | None]:
    handle, index = op.inputs[:2]
    count = op.add("TensorListLength", handle)
    empty = op.add("TensorListReserve", _sizes(op, handle), count, element_dtype=op.attr("element_dtype"))
    return op.add("TensorListSetItem", empty, index, op.grad), None, None


@gradient("TensorListSetItem")
def set_item(op: NodeGradient) -> Sequence[str | None]:
    index, item = op.inputs[1:3]
    rest = op.add("TensorListSetItem", op.grad, index, op.zeros(item))
    shape = op.shape(item)
    return rest, None, op.add("TensorListGetItem", op.grad, index, shape, element_dtype=op.attr("element_dtype"))


gradient("TensorListStack")(lambda op: (op.add("TensorListFromTensor", op.grad, _sizes(op, op.inputs[0])), None))


@gradient("TensorListFromTensor")
def from_tensor(op: NodeGradient) -> Sequence[str | None]:
    sizes = _sizes(op, op.output())
    return op.add("TensorListStack", op.grad, sizes, element_dtype=op.attr("element_dtype")), None


@gradient("TensorListPushBack")
def push_back(op: NodeGradient) -> Sequence[str | None]:
    item = op.inputs[1]
    popped = op.add("TensorListPopBack", op.grad, op.shape(item), element_dtype=op.attr("element_dtype"))
    return popped, f"{popped}:1"


gradient("TensorListPopBack")(lambda op: (op.add("TensorListPushBack", op.grad_of(0), op.grad_of(1)), None))
