"""Shape rules of gradients: of pools, crops, dilations, copies and segment sums, and of CTC's loss."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least, merge, of_rank
from pocketgraph.kernels.shapes.rules import Call, shape_rule


@shape_rule("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax", "Dilation2DBackpropInput", "ResizeBicubicGrad")
def of_an_image(call: Call) -> Shape:
    """The gradient by an image has that image's shape."""
    return Shape(of_rank(call.shape(1 if call.node.op == "ResizeBicubicGrad" else 0), 4))


@shape_rule("Conv3DBackpropInput", "MaxPool3DGrad")
def of_a_volume(call: Call) -> Shape:
    return Shape(of_rank(call.shape(0), 5))


@shape_rule("Conv3DBackpropFilter")
def of_a_volume_filter(call: Call) -> Shape:
    return Shape(of_rank(call.shape(1), 5))


@shape_rule("Dilation2DBackpropFilter")
def of_a_dilation_filter(call: Call) -> Shape:
    return Shape(of_rank(call.shape(1), 3))


@shape_rule("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def of_a_pool_gradient(call: Call) -> Shape:
    """What pooling gives: the shape of the pool's own result."""
    return Shape(of_rank(call.shape(1), 5 if "3D" in call.node.op else 4))


@shape_rule("AvgPoolGrad", "AvgPool3DGrad")
def of_a_mean_pool(call: Call) -> Shape:
    rank, sizes = 5 if "3D" in call.node.op else 4, call.as_shape(0)
    return Shape(of_rank(sizes if sizes.rank in (None, rank) else UNKNOWN, rank))


@shape_rule("StridedSliceGrad")
def of_a_slice(call: Call) -> Shape:
    """The shape of what was sliced, which is an input."""
    return call.as_shape(0)


@shape_rule("BiasAddGrad")
def of_a_bias(call: Call) -> Shape:
    dims = call.shape(0).dims
    if not dims:
        return Shape((None,))
    is_first = str(call.attr("data_format", "NHWC")).startswith("NC")
    return Shape((dims[1 if is_first and len(dims) > 1 else -1],))


@shape_rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def of_a_batch_norm(call: Call) -> Sequence[Shape]:
    channels = call.shape(2) if call.shape(2).rank == 1 else Shape((None,))
    return [merge(call.shape(0), call.shape(1)), channels, channels, Shape((0,)), Shape((0,))]


@shape_rule("ResizeBilinearGrad", "ResizeNearestNeighborGrad")
def of_resizing(call: Call) -> Shape:
    grad = of_rank(call.shape(0), 4)
    if call.node.op == "ResizeBilinearGrad":
        rows, columns = of_rank(call.shape(1), 4)[1:3]
    else:
        rows, columns = of_rank(call.as_shape(1), 2)
    return Shape((grad[0], rows, columns, grad[3]))


@shape_rule("MirrorPadGrad")
def of_mirrored_borders(call: Call) -> Shape:
    grad, borders = call.shape(0), call.value(1)
    if grad.dims is None or borders is None or borders.shape != (len(grad.dims), 2):
        return UNKNOWN if grad.dims is None else Shape((None,) * len(grad.dims))
    return Shape(None if s is None else s - int(sum(pair)) for s, pair in zip(grad.dims, borders, strict=True))


@shape_rule("CropAndResizeGradImage")
def of_a_cropped_image(call: Call) -> Shape:
    return Shape(of_rank(call.as_shape(3), 4))


@shape_rule("CropAndResizeGradBoxes")
def of_crop_boxes(call: Call) -> Shape:
    return Shape(of_rank(call.shape(2), 2))


@shape_rule("TileGrad")
def of_copies(call: Call) -> Shape:
    whole, times = call.shape(0), call.integers(1)
    if whole.dims is None or times is None or len(times) != len(whole.dims) or 0 in times:
        return whole if whole.dims is None else Shape((None,) * len(whole.dims))
    return Shape(None if s is None else s // t for s, t in zip(whole.dims, times, strict=True))


@shape_rule("BatchNormWithGlobalNormalizationGrad")
def of_the_oldest_batch_norm(call: Call) -> Sequence[Shape]:
    image = of_rank(merge(call.shape(0), call.shape(4)), 4)
    return [Shape(image), *[Shape((image[3],))] * 4]


@shape_rule("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def of_segments(call: Call) -> Shape:
    grad = at_least(call.shape(0), 1)
    return UNKNOWN if grad.dims is None else Shape((call.integer(3), *grad.dims[1:]))


@shape_rule("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def of_used_segments(call: Call) -> Sequence[Shape]:
    grad = at_least(call.shape(0), 1)
    return [UNKNOWN if grad.dims is None else Shape((None, *grad.dims[1:])), Shape((None,))]


@shape_rule("SparseFillEmptyRowsGrad")
def of_filled_rows(call: Call) -> Sequence[Shape]:
    return [Shape(of_rank(call.shape(0), 1)), SCALAR]


@shape_rule("CTCLoss")
def ctc_loss(call: Call) -> Sequence[Shape]:
    scores = of_rank(call.shape(0), 3)
    return [Shape((scores[1],)), Shape(scores)]
