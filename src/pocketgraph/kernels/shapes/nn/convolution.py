"""Shape rules of convolutions and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import Dim, merge_dim, of_rank, product, total
from pocketgraph.kernels.shapes.common_rules import of_input
from pocketgraph.kernels.shapes.nn.window_sizes import convolved, layout_of, per_axis, spatial_axes
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("Conv2D", "Conv3D", "DepthwiseConv2dNative", "_FusedConv2D", "_FusedDepthwiseConv2dNative")
def convolution(call: ShapeCall) -> Shape:
    rank = 5 if call.node.op == "Conv3D" else 4
    layout = layout_of(call, rank)
    image, kernel = of_rank(call.shape(0), rank), of_rank(call.shape(1), rank)
    depthwise = "Depthwise" in call.node.op
    channel, _ = spatial_axes(layout)
    have, want = image[channel], kernel[-2]
    if have is not None and want is not None and (have != want if depthwise else not want or have % want):
        raise GraphError(f"an image of {have} channels does not fit a filter of {want}")
    if not depthwise and have and want and kernel[-1] is not None and kernel[-1] % (have // want):
        raise GraphError(f"{kernel[-1]} filters cannot be shared out among {have // want} groups of channels")
    strides, dilations = per_axis(call, "strides", rank), per_axis(call, "dilations", rank)
    channels = product(*kernel[-2:]) if depthwise else kernel[-1]
    pads = call.attr("explicit_paddings", ())
    return convolved(image, kernel[: rank - 2], channels, layout, strides, call.attr("padding"), dilations, pads)


@shape_rule("Dilation2D")
def dilation(call: ShapeCall) -> Shape:
    image, kernel = of_rank(call.shape(0), 4), of_rank(call.shape(1), 3)
    strides, rates = per_axis(call, "strides", 4), per_axis(call, "rates", 4)
    channels = merge_dim(image[3], kernel[2])
    return convolved(image, kernel[:2], channels, "NHWC", strides, call.attr("padding"), rates)


shape_rule("FusedPadConv2D")(lambda call: _after_padding(call, of_rank(call.shape(0), 4), 1, 2))


@shape_rule("FusedResizeAndPadConv2D")
def fused_resize_pad_convolution(call: ShapeCall) -> Shape:
    image = of_rank(call.shape(0), 4)
    size = of_rank(call.as_shape(1), 2)
    return _after_padding(call, (image[0], size[0], size[1], image[3]), 2, 3)


def _after_padding(call: ShapeCall, image: Sequence[Dim], paddings: int, kernel: int) -> Shape:
    amounts, filters = call.integers(paddings), of_rank(call.shape(kernel), 4)
    padded = [total(d, *(amounts[2 * i : 2 * i + 2] if amounts else (None,))) for i, d in enumerate(image)]
    strides = per_axis(call, "strides", 4)
    return convolved(padded, filters[:2], filters[3], "NHWC", strides, call.attr("padding"), (1,) * 4)


shape_rule("Conv3DBackpropInput")(of_input(0, rank=5))
shape_rule("Conv3DBackpropFilter")(of_input(1, rank=5))


@shape_rule(
    "Conv2DBackpropInput", "Conv3DBackpropInputV2", "Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter",
)  # fmt: skip
def convolution_gradient(call: ShapeCall) -> Shape:
    rank = 5 if "3D" in call.node.op else 4
    sizes = call.as_shape(1 if "Filter" in call.node.op else 0)
    dims = list(of_rank(sizes, rank) if sizes.rank in (None, rank) else (None,) * rank)
    if "Filter" not in call.node.op and sizes.rank in (None, rank):
        channel, _ = spatial_axes(layout_of(call, rank))
        kernel, gradient = of_rank(call.shape(1), rank), of_rank(call.shape(2), rank)
        dims[0] = merge_dim(dims[0], gradient[0])
        if "Depthwise" not in call.node.op and dims[channel] is None:
            dims[channel] = kernel[-2]
        _check_comes_from(call, dims, kernel, gradient)
    return Shape(dims)


def _check_comes_from(call: ShapeCall, dims: Sequence[Dim], kernel: Sequence[Dim], gradient: Sequence[Dim]) -> None:
    """Raises GraphError where a convolution of an image of ``dims`` has certainly not the places of ``gradient``."""
    rank = len(dims)
    layout, strides = layout_of(call, rank), per_axis(call, "strides", rank)
    dilations, pads = per_axis(call, "dilations", rank), call.attr("explicit_paddings", ())
    places = (
        convolved(dims, kernel[: rank - 2], None, layout, strides, call.attr("padding"), dilations, pads).dims or ()
    )
    for axis in spatial_axes(layout)[1]:
        if None not in (places[axis], gradient[axis]) and places[axis] != gradient[axis]:
            raise GraphError(f"an image of {list(dims)} does not come from one of {list(gradient)}")
