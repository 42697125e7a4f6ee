"""Shape rules of biases and normalization, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import at_least, merge, merge_dim, of_rank
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.nn.window_sizes import layout_of, spatial_axes
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

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
