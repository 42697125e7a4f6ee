"""Gradients of tensor arrays: each has an array of gradients beside it, in which they add up.

The flow, a number that only orders reads and writes, carries what is computed later to what is computed before, and its
gradient the other way round. Source: tensorflow/python/ops/tensor_array_grad.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient

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
