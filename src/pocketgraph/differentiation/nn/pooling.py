"""Gradients of pooling."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError
from pocketgraph.graph.attr import POOLING


@gradient("MaxPool", "MaxPool3D")
def max_pool(op: NodeGradient) -> str:
    return op.add(f"{op.node.op}Grad", op.inputs[0], op.output(), op.grad, **op.attrs(*POOLING))


@gradient("MaxPoolGrad", "MaxPool3DGrad")
def max_pool_grad(op: NodeGradient) -> tuple[None, None, str]:
    """By the gradient that it hands on: which pixels are the largest does not change."""
    image, pooled, _ = op.inputs
    if op.attr("padding") == "EXPLICIT":
        raise GraphError("of explicit paddings it has no gradient here")
    layer = op.attrs("ksize", "strides", "padding", "data_format")
    return None, None, op.add(f"{op.node.op}Grad", image, pooled, op.grad, **layer)


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


gradient("AvgPoolGrad")(lambda op: (None, op.add("AvgPool", op.grad, **op.attrs(*POOLING))))
