"""Gradients of convolutions and biases."""

from __future__ import annotations

from pocketgraph.differentiation.backward import Backward
from pocketgraph.differentiation.registry import gradient

Pair = tuple[str, str]
LAYER = ("strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu")
"""Not a trait: the attributes that convolutions share with their gradients."""


@gradient("Conv2D")
def conv2d(op: Backward) -> Pair:
    return layer(op, "Conv2DBackpropInput", "Conv2DBackpropFilter")


@gradient("DepthwiseConv2dNative")
def depthwise(op: Backward) -> Pair:
    return layer(op, "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter")


@gradient("Conv3D")
def conv3d(op: Backward) -> Pair:
    return layer(op, "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")


@gradient("Conv2DBackpropInput")
def transposed_conv2d(op: Backward) -> tuple[None, str, str]:
    return transposed(op, "Conv2DBackpropFilter", "Conv2D")


@gradient("DepthwiseConv2dNativeBackpropInput")
def transposed_depthwise(op: Backward) -> tuple[None, str, str]:
    return transposed(op, "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNative")


@gradient("Conv3DBackpropInputV2")
def transposed_conv3d(op: Backward) -> tuple[None, str, str]:
    return transposed(op, "Conv3DBackpropFilterV2", "Conv3D")


def layer(op: Backward, by_input: str, by_filter: str) -> Pair:
    """Of a convolution, by the ops that compute its two gradients."""
    image, filters = op.inputs
    attrs = op.attrs(*LAYER)
    return (
        op.add(by_input, op.shape(image), filters, op.grad, **attrs),
        op.add(by_filter, image, op.shape(filters), op.grad, **attrs),
    )


def transposed(op: Backward, by_filter: str, forward: str) -> tuple[None, str, str]:
    """Of a transposed convolution, which is what the gradient of a convolution by its input is."""
    _, filters, image = op.inputs
    attrs = op.attrs(*LAYER)
    return (
        None,
        op.add(by_filter, op.grad, op.shape(filters), image, **attrs),
        op.add(forward, op.grad, filters, **attrs),
    )


@gradient("Conv2DBackpropFilter")
def conv2d_by_filter(op: Backward) -> tuple[str, None, str]:
    image, _, gradient_of_layer = op.inputs
    layer = op.attrs(*LAYER)
    return (
        op.add("Conv2DBackpropInput", op.shape(image), op.grad, gradient_of_layer, **layer),
        None,
        op.add("Conv2D", image, op.grad, **layer),
    )


@gradient("Dilation2D")
def dilation(op: Backward) -> Pair:
    layer = op.attrs("strides", "rates", "padding")
    return (
        op.add("Dilation2DBackpropInput", *op.inputs, op.grad, **layer),
        op.add("Dilation2DBackpropFilter", *op.inputs, op.grad, **layer),
    )


@gradient("BiasAdd")
def bias(op: Backward) -> Pair:
    return op.grad, op.add("BiasAddGrad", op.grad, **op.attrs("data_format"))


@gradient("BiasAddV1")
def old_bias(op: Backward) -> Pair:
    return op.grad, op.add("BiasAddGrad", op.grad)
