"""Gradients of pooling."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError
from pocketgraph.graph.attr import POOLING
from pocketgraph.graph.dtype import INT64


@gradient("MaxPool", "MaxPool3D")
def max_pool(op: NodeGradient) -> str:
    return op.add(f"{op.node.op}Grad", op.inputs[0], op.output(), op.grad, **op.attrs(*POOLING))


SECOND = {
    "MaxPoolGrad": "MaxPoolGradGrad", "MaxPoolGradGrad": "MaxPoolGrad", "MaxPoolGradV2": "MaxPoolGradGradV2",
    "MaxPoolGradGradV2": "MaxPoolGradV2", "MaxPool3DGrad": "MaxPool3DGradGrad", "MaxPool3DGradGrad": "MaxPool3DGrad",
}  # fmt: skip
"""Not a trait: what hands a gradient on to the largest pixels, and what takes those of one; each is the other's own."""


@gradient(*SECOND)
def max_pool_grad(op: NodeGradient) -> tuple[None, None, str]:
    """By the gradient that it hands on: which pixels are the largest does not change."""
    image, pooled, _, *window = op.inputs
    if op.attr("padding") == "EXPLICIT":
        raise GraphError("of explicit paddings it has no gradient here")
    layer = op.attrs("ksize", "strides", "padding", "data_format")
    return None, None, op.add(SECOND[op.node.op], image, pooled, op.grad, *window, **layer)


@gradient("MaxPoolV2")
def max_pool_by_tensors(op: NodeGradient) -> str:
    image, ksize, strides = op.inputs
    return op.add("MaxPoolGradV2", image, op.output(), op.grad, ksize, strides, **op.attrs("padding", "data_format"))


@gradient("MaxPoolWithArgmax")
def max_pool_with_argmax(op: NodeGradient) -> str:
    layer = op.attrs("ksize", "strides", "padding", "include_batch_in_index")
    return op.add("MaxPoolGradWithArgmax", op.inputs[0], op.grad, op.output(1), **layer)


@gradient("AvgPool", "AvgPool3D")
def average_pool(op: NodeGradient) -> str:
    return op.add(f"{op.node.op}Grad", op.shape_of_input(0), op.grad, **op.attrs(*POOLING))


gradient("AvgPoolGrad", "AvgPool3DGrad")(
    lambda op: (None, op.add(op.node.op.removesuffix("Grad"), op.grad, **op.attrs(*POOLING)))
)


@gradient("FractionalMaxPool", "FractionalAvgPool")
def fractional_pool(op: NodeGradient) -> str:
    rows, columns = op.output(1), op.output(2)
    if op.node.op == "FractionalMaxPool":
        ends = [op.inputs[0], op.output(), op.grad]
    else:
        ends = [op.cast(op.shape_of_input(0), INT64), op.grad]
    return op.add(f"{op.node.op}Grad", *ends, rows, columns, **op.attrs("overlapping"))
