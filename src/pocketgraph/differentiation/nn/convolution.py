"""Gradients of convolutions and biases."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient

Pair = tuple[str, str]
LAYER = ("strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu")
"""Not a trait: the attributes that convolutions share with their gradients."""


BY_INPUT_AND_FILTER = {
    "Conv2D": ("Conv2DBackpropInput", "Conv2DBackpropFilter"),
    "DepthwiseConv2dNative": ("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
    "Conv3D": ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
}
"""Not a trait: the ops that compute a convolution's two gradients."""
TRANSPOSED = {by_input: (by_filter, op) for op, (by_input, by_filter) in BY_INPUT_AND_FILTER.items()}
"""Not a trait: transposed convolutions, which is what the gradients of convolutions by their inputs are."""
BY_FILTER = {by_filter: (by_input, op) for op, (by_input, by_filter) in BY_INPUT_AND_FILTER.items()}
"""Not a trait: the gradients of convolutions by their filters."""


@gradient(*BY_INPUT_AND_FILTER)
def convolution(op: NodeGradient) -> Pair:
    image, filters = op.inputs
    by_input, by_filter = BY_INPUT_AND_FILTER[op.node.op]
    attrs = op.attrs(*LAYER)
    return (
        op.add(by_input, op.shape(image), filters, op.grad, **attrs),
        op.add(by_filter, image, op.shape(filters), op.grad, **attrs),
    )


@gradient(*TRANSPOSED)
def transposed_convolution(op: NodeGradient) -> tuple[None, str, str]:
    _, filters, image = op.inputs
    by_filter, forward = TRANSPOSED[op.node.op]
    attrs = op.attrs(*LAYER)
    return (
        None,
        op.add(by_filter, op.grad, op.shape(filters), image, **attrs),
        op.add(forward, op.grad, filters, **attrs),
    )


@gradient(*BY_FILTER)
def convolution_by_filter(op: NodeGradient) -> tuple[str, None, str]:
    image, _, gradient_of_layer = op.inputs
    by_input, forward = BY_FILTER[op.node.op]
    layer = op.attrs(*LAYER)
    return (
        op.add(by_input, op.shape(image), op.grad, gradient_of_layer, **layer),
        None,
        op.add(forward, image, op.grad, **layer),
    )


@gradient("Dilation2D")
def dilation(op: NodeGradient) -> Pair:
    layer = op.attrs("strides", "rates", "padding")
    return (
        op.add("Dilation2DBackpropInput", *op.inputs, op.grad, **layer),
        op.add("Dilation2DBackpropFilter", *op.inputs, op.grad, **layer),
    )


gradient("BiasAdd", "BiasAddV1")(lambda op: (op.grad, op.add("BiasAddGrad", op.grad, **op.attrs("data_format"))))


@gradient("BiasAddGrad")
def bias_add_grad(op: NodeGradient) -> str:
    """Each number for all that were summed to it."""
    return op.add("BiasAdd", op.zeros(op.inputs[0]), op.grad, **op.attrs("data_format"))
