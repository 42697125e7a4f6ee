"""Gradients of variables, and of arrays and lists of tensors.

What is read is differentiated by the variable itself. Each array has an array of gradients beside it, in which they add
up; the flow, a number that only orders reads and writes, carries what is computed later to what is computed before, and
its gradient the other way round. A list has one of the gradients of its elements.
Source: tensorflow/python/ops/tensor_array_grad.py, list_ops.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.differentiation.array import summed_rows
from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import INT32

not_differentiable(
    "Assign", "AssignAdd", "AssignSub", "Variable", "VariableV2", "VarHandleOp", "VarIsInitializedOp", "VariableShape",
    "IsVariableInitialized", "LookupTableFind", "LookupTableFindV2",
)  # fmt: skip


gradient("ReadVariableOp")(lambda op: op.grad)


@gradient("ResourceGather")
def gather_from_variable(op: NodeGradient) -> str:
    shape = op.add("VariableShape", op.inputs[0])
    return summed_rows(op, op.grad, op.inputs[1], shape)


@gradient("ResourceGatherNd")
def gather_points_from_variable(op: NodeGradient) -> str:
    indices = op.inputs[1]
    shape = op.cast(op.add("VariableShape", op.inputs[0]), op.builder.dtype(indices))
    return op.add("ScatterNd", indices, op.grad, shape)


not_differentiable("TensorArrayV3", "TensorArraySizeV3", "TensorArrayGradV3", "TensorArrayCloseV3")


def _beside(op: NodeGradient, flow: str) -> tuple[str, str]:
    """The handle and the flow of the array of gradients, behind a flow."""
    source = op.builder.top_scope.encode() or b"gradients"
    made = op.add("TensorArrayGradV3", op.inputs[0], flow, source=source)
    return made, op.add("Identity", flow, name="gradient_flow", control=[made])


OPPOSITES = {
    "TensorArrayReadV3": "TensorArrayWriteV3", "TensorArrayWriteV3": "TensorArrayReadV3",
    "TensorArrayGatherV3": "TensorArrayScatterV3", "TensorArrayScatterV3": "TensorArrayGatherV3",
}  # fmt: skip
"""Not a trait: what puts the gradient of a value that was taken into the array of gradients, and what takes it out."""


@gradient("TensorArrayReadV3", "TensorArrayGatherV3")
def read(op: NodeGradient) -> Sequence[str | None]:
    handle, flow = _beside(op, op.inputs[2])
    return None, None, op.add(OPPOSITES[op.node.op], handle, op.inputs[1], op.grad, flow)


@gradient("TensorArrayWriteV3", "TensorArrayScatterV3")
def write(op: NodeGradient) -> Sequence[str | None]:
    handle, flow = _beside(op, op.grad)
    value = op.add(OPPOSITES[op.node.op], handle, op.inputs[1], flow, dtype=op.attr("T"))
    return None, None, value, op.grad


@gradient("TensorArrayConcatV3")
def concat(op: NodeGradient) -> Sequence[str | None]:
    handle, flow = _beside(op, op.inputs[1])
    return None, op.add("TensorArraySplitV3", handle, op.grad, op.output(1), flow)


@gradient("TensorArraySplitV3")
def split(op: NodeGradient) -> Sequence[str | None]:
    handle, flow = _beside(op, op.grad)
    value = op.add("TensorArrayConcatV3", handle, flow, dtype=op.attr("T"))
    return None, value, None, op.grad


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
