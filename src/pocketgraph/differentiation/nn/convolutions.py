"""Gradients of convolutions and biases."""

from __future__ import annotations

from pocketgraph.differentiation.backward import Backward
from pocketgraph.differentiation.registry import gradient

Pair = tuple[str, str]
LAYER = ("strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu")
"""Not a trait: the attributes that convolutions share with their gradients."""


@gradient("Conv2D")
def conv2d(op: Backward) -> Pair:
    image, filters = op.inputs
    layer = op.attrs(*LAYER)
    return (
        op.add("Conv2DBackpropInput", op.shape(image), filters, op.grad, **layer),
        op.add("Conv2DBackpropFilter", image, op.shape(filters), op.grad, **layer),
    )


@gradient("Conv2DBackpropInput")
def transposed_conv2d(op: Backward) -> tuple[None, str, str]:
    """Of a transposed convolution, which is what the gradient of a convolution by its input is."""
    _, filters, image = op.inputs
    layer = op.attrs(*LAYER)
    return (
        None,
        op.add("Conv2DBackpropFilter", op.grad, op.shape(filters), image, **layer),
        op.add("Conv2D", op.grad, filters, **layer),
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


@gradient("DepthwiseConv2dNative")
def depthwise(op: Backward) -> Pair:
    image, filters = op.inputs
    layer = op.attrs(*LAYER)
    return (
        op.add("DepthwiseConv2dNativeBackpropInput", op.shape(image), filters, op.grad, **layer),
        op.add("DepthwiseConv2dNativeBackpropFilter", image, op.shape(filters), op.grad, **layer),
    )


@gradient("DepthwiseConv2dNativeBackpropInput")
def transposed_depthwise(op: Backward) -> tuple[None, str, str]:
    _, filters, image = op.inputs
    layer = op.attrs(*LAYER)
    return (
        None,
        op.add("DepthwiseConv2dNativeBackpropFilter", op.grad, op.shape(filters), image, **layer),
        op.add("DepthwiseConv2dNative", op.grad, filters, **layer),
    )


@gradient("Conv3D")
def conv3d(op: Backward) -> Pair:
    image, filters = op.inputs
    layer = op.attrs(*LAYER)
    return (
        op.add("Conv3DBackpropInputV2", op.shape(image), filters, op.grad, **layer),
        op.add("Conv3DBackpropFilterV2", image, op.shape(filters), op.grad, **layer),
    )


@gradient("Conv3DBackpropInputV2")
def transposed_conv3d(op: Backward) -> tuple[None, str, str]:
    _, filters, image = op.inputs
    layer = op.attrs(*LAYER)
    return (
        None,
        op.add("Conv3DBackpropFilterV2", op.grad, op.shape(filters), image, **layer),
        op.add("Conv3D", op.grad, filters, **layer),
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
