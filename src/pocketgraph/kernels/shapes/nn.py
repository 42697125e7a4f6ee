"""Shape rules of layers: convolutions, pools, normalizations, activations, recurrent cells and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, at_least, merge, merge_dim, of_rank, product, total, window
from pocketgraph.kernels.shapes.common_rules import VECTOR, merged, of_input, unchanged
from pocketgraph.kernels.shapes.math import matmul
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


def spatial_axes(layout: str) -> tuple[int, tuple[int, ...]]:
    """The channel axis and the spatial axes of ``NHWC``, ``NCHW``, ``NDHWC`` or ``NCDHW``.

    Raises:
        GraphError: another layout.
    """
    if layout not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise GraphError(f"the data_format {layout} is not supported")
    return layout.index("C"), tuple(i for i, letter in enumerate(layout) if letter in "DHW")


def layout_of(call: ShapeCall, rank: int) -> str:
    return str(call.attr("data_format", "NHWC" if rank == 4 else "NDHWC"))


def per_axis(call: ShapeCall, name: str, rank: int) -> tuple[int, ...]:
    values = tuple(int(v) for v in call.attr(name, ()) or (1,) * rank)
    if len(values) != rank:
        raise GraphError(f"{name} should have {rank} numbers, not {len(values)}")
    return values


def convolved(
    image: Sequence[Dim], sizes: Sequence[Dim], channels: Dim, layout: str, strides: Sequence[int], padding: str,
    dilations: Sequence[int], pads: Sequence[int] = (),
) -> Shape:  # fmt: skip
    """The shape of a sliding window's result.

    Args:
        image: the input's sizes in ``layout``.
        sizes: of the window, one a spatial axis.
        channels: of the result.
        strides, dilations: one a dimension of the input.
        pads: before and after each dimension of the input, for ``EXPLICIT``.
    """
    channel, axes = spatial_axes(layout)
    out = list(image)
    out[channel] = channels
    for axis, size in zip(axes, sizes, strict=True):
        edges = (int(pads[2 * axis]), int(pads[2 * axis + 1])) if padding == "EXPLICIT" else (0, 0)
        out[axis] = window(image[axis], size, strides[axis], padding, dilation=dilations[axis], pads=edges)
    return Shape(out)


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


@shape_rule("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax", "MaxPoolV2")
def pool(call: ShapeCall) -> Shape | Sequence[Shape]:
    rank = 5 if call.node.op.endswith("3D") else 4
    layout = layout_of(call, rank)
    image = of_rank(call.shape(0), rank)
    if call.node.op == "MaxPoolV2":
        sizes, strides = call.integers(1), call.integers(2)
        if sizes is None or strides is None:
            return Shape((image[0], None, None, None))
    else:
        sizes, strides = list(per_axis(call, "ksize", rank)), list(per_axis(call, "strides", rank))
    channel, axes = spatial_axes(layout)
    channels = window(image[channel], sizes[channel], strides[channel], call.attr("padding"))
    if sizes[channel] == 1 and strides[channel] == 1:
        channels = image[channel]
    pads: Any = call.attr("explicit_paddings", ())
    wide = [sizes[axis] for axis in axes]
    shape = convolved(image, wide, channels, layout, strides, call.attr("padding"), (1,) * rank, pads)
    return [shape, shape] if call.node.op == "MaxPoolWithArgmax" else shape


shape_rule("MaxPool3DGrad")(of_input(0, rank=5))
shape_rule("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax", "Dilation2DBackpropInput")(of_input(0, rank=4))
shape_rule("Dilation2DBackpropFilter")(of_input(1, rank=3))


@shape_rule("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def of_a_pool_gradient(call: ShapeCall) -> Shape:
    """What pooling gives: the shape of the pool's own result."""
    return Shape(of_rank(call.shape(1), 5 if "3D" in call.node.op else 4))


@shape_rule("AvgPoolGrad", "AvgPool3DGrad")
def of_a_mean_pool(call: ShapeCall) -> Shape:
    rank, sizes = 5 if "3D" in call.node.op else 4, call.as_shape(0)
    return Shape(of_rank(sizes if sizes.rank in (None, rank) else UNKNOWN, rank))


shape_rule("LRN")(unchanged)


@shape_rule("BiasAdd", "BiasAddV1")
def bias_add(call: ShapeCall) -> Shape:
    value, (bias,) = at_least(call.shape(0), 2), of_rank(call.shape(1), 1)
    if value.dims is None or bias is None:
        return value
    channel = 1 if call.attr("data_format", "NHWC") == "NCHW" else len(value.dims) - 1
    return merge(value, Shape(bias if i == channel else None for i in range(len(value.dims))))


@shape_rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(call: ShapeCall) -> Sequence[Shape]:
    rank = 5 if call.attr("data_format", "NHWC") in ("NDHWC", "NCDHW") else 4
    image = list(of_rank(call.shape(0), rank))
    channel, _ = spatial_axes(layout_of(call, rank))
    channels = image[channel]
    checked = range(1, 3 if call.attr("is_training", True) else 5)
    for i in checked:
        channels = merge_dim(channels, of_rank(call.shape(i), 1)[0])
    image[channel] = channels
    statistics = [Shape((channels,))] * 4
    more = [SCALAR] if call.node.op.endswith("V3") else []  # what only GPUs fill
    return [Shape(image), *statistics, *more]


@shape_rule("BatchNormWithGlobalNormalization")
def batch_norm(call: ShapeCall) -> Shape:
    image = of_rank(call.shape(0), 4)
    channels = image[3]
    for i in range(1, 5 if call.attr("scale_after_normalization") else 4):
        channels = merge_dim(channels, of_rank(call.shape(i), 1)[0])
    return Shape((*image[:3], channels))


shape_rule("LRNGrad")(lambda call: at_least(merge(call.shape(0), call.shape(1)), 4))


@shape_rule("BiasAddGrad")
def of_a_bias(call: ShapeCall) -> Shape:
    dims = call.shape(0).dims
    if not dims:
        return Shape((None,))
    is_first = str(call.attr("data_format", "NHWC")).startswith("NC")
    return Shape((dims[1 if is_first and len(dims) > 1 else -1],))


@shape_rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def of_a_batch_norm(call: ShapeCall) -> Sequence[Shape]:
    channels = call.shape(2) if call.shape(2).rank == 1 else Shape((None,))
    return [merge(call.shape(0), call.shape(1)), channels, channels, Shape((0,)), Shape((0,))]


@shape_rule("BatchNormWithGlobalNormalizationGrad")
def of_the_oldest_batch_norm(call: ShapeCall) -> Sequence[Shape]:
    image = of_rank(merge(call.shape(0), call.shape(4)), 4)
    return [Shape(image), *[Shape((image[3],))] * 4]


shape_rule(
    "Elu", "EluGrad", "LeakyRelu", "LogSoftmax", "Relu", "Relu6", "Selu", "Softmax", "Softplus", "Softsign",
)(unchanged)  # fmt: skip
shape_rule("LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad")(merged)


@shape_rule("BlockLSTM", "BlockLSTMV2")
def block_lstm(call: ShapeCall) -> Sequence[Shape]:
    steps, batch, _ = of_rank(call.shape(1), 3)
    return [Shape((steps, batch, of_rank(call.shape(2), 2)[1]))] * 7


@shape_rule("LSTMBlockCell", "GRUBlockCell")
def cell(call: ShapeCall) -> Sequence[Shape]:
    batch = of_rank(call.shape(0), 2)[0]
    outputs = 7 if call.node.op == "LSTMBlockCell" else 4
    return [Shape((batch, of_rank(call.shape(1), 2)[1]))] * outputs


@shape_rule("SoftmaxCrossEntropyWithLogits")
def softmax_loss(call: ShapeCall) -> Sequence[Shape]:
    both = merge(call.shape(0), call.shape(1))
    return [Shape((of_rank(both, 2)[0],)), both]


@shape_rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_loss(call: ShapeCall) -> Sequence[Shape]:
    logits = of_rank(call.shape(0), 2)
    rows = merge_dim(logits[0], of_rank(call.shape(1), 1)[0])
    return [Shape((rows,)), Shape((rows, logits[1]))]


shape_rule("GatherTree", "Addons>GatherTree")(unchanged)


@shape_rule("CTCGreedyDecoder")
def ctc_greedy(call: ShapeCall) -> Sequence[Shape]:
    return [Shape((None, 2)), Shape((None,)), Shape((2,)), Shape((of_rank(call.shape(0), 3)[1], 1))]


@shape_rule("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(call: ShapeCall) -> Sequence[Shape]:
    count = call.count("top_paths")
    inputs = call.shape(0)
    batch = inputs[1] if inputs.rank == 3 else None
    return [Shape((None, 2))] * count + [VECTOR] * count + [Shape((2,))] * count + [Shape((batch, count))]


@shape_rule("CTCLoss")
def ctc_loss(call: ShapeCall) -> Sequence[Shape]:
    scores = of_rank(call.shape(0), 3)
    return [Shape((scores[1],)), Shape(scores)]


shape_rule("IsotonicRegression")(of_input(0, times=2))


shape_rule("_FusedMatMul")(matmul)
