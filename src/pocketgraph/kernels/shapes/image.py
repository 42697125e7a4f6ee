"""Shape rules of pictures in files, of their colors and pixels, resized, cropped and warped, and of boxes."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import merge_dim, of_rank
from pocketgraph.kernels.shapes.common_rules import VECTOR, fixed, of_input, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps")(
    fixed(VECTOR)
)


@shape_rule("NonMaxSuppressionV4")
def non_max_suppression_padded(call: ShapeCall) -> Sequence[Shape]:
    padded = call.attr("pad_to_max_output_size", False)
    return [Shape((call.integer(2) if padded else None,)), SCALAR]


@shape_rule("NonMaxSuppressionV5")
def non_max_suppression_soft(call: ShapeCall) -> Sequence[Shape]:
    size = Shape((call.integer(2) if call.attr("pad_to_max_output_size", False) else None,))
    return [size, size, SCALAR]


@shape_rule("CombinedNonMaxSuppression")
def combined_non_max_suppression(call: ShapeCall) -> Sequence[Shape]:
    batch, each = of_rank(call.shape(0), 4)[0], call.integer(2)
    classes, limit = of_rank(call.shape(1), 3)[2], call.integer(3)
    count = limit
    if call.attr("pad_per_class", False):
        count = None if None in (each, classes, limit) else min(limit or 0, (each or 0) * (classes or 0))
    return [Shape((batch, count, 4)), Shape((batch, count)), Shape((batch, count)), Shape((batch,))]


shape_rule("ImageProjectiveTransform")(unchanged)
shape_rule("ResizeBicubicGrad")(of_input(1, rank=4))
shape_rule("CropAndResizeGradBoxes")(of_input(2, rank=2))


@shape_rule(
    "ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "ScaleAndTranslate", "ExtractGlimpse"
)
def resize(call: ShapeCall) -> Shape:
    batch, _, _, channels = of_rank(call.shape(0), 4)
    height, width = of_rank(call.sizes(1), 2)
    return Shape((batch, height, width, channels))


@shape_rule("CropAndResize")
def crop_and_resize(call: ShapeCall) -> Shape:
    channels = of_rank(call.shape(0), 4)[3]
    boxes = merge_dim(of_rank(call.shape(1), 2)[0], of_rank(call.shape(2), 1)[0])
    height, width = of_rank(call.sizes(3), 2)
    return Shape((boxes, height, width, channels))


@shape_rule("ResizeBilinearGrad", "ResizeNearestNeighborGrad")
def of_resizing(call: ShapeCall) -> Shape:
    grad = of_rank(call.shape(0), 4)
    if call.node.op == "ResizeBilinearGrad":
        rows, columns = of_rank(call.shape(1), 4)[1:3]
    else:
        rows, columns = of_rank(call.sizes(1), 2)
    return Shape((grad[0], rows, columns, grad[3]))


shape_rule("CropAndResizeGradImage")(lambda call: Shape(of_rank(call.as_shape(3), 4)))


@shape_rule("Resampler", "Addons>Resampler")
def resampler(call: ShapeCall) -> Shape:
    data, places = call.dims(0), call.dims(1)
    return Shape((*places[:-1], data[-1])) if places else UNKNOWN


shape_rule("DrawBoundingBoxes", "DrawBoundingBoxesV2")(unchanged)
shape_rule("EncodeJpeg", "EncodePng")(scalar)
shape_rule("DecodeGif")(fixed(Shape((None, None, None, 3))))


@shape_rule("DecodeJpeg", "DecodePng", "DecodeBmp", "DecodeAndCropJpeg")
def decode_image(call: ShapeCall) -> Shape:
    return Shape((None, None, call.attr("channels", 0) or None))


shape_rule(
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "HSVToRGB", "RGBToHSV", "AdjustContrast", "AdjustHsvInYiq",
    "Addons>AdjustHsvInYiq",
)(unchanged)  # fmt: skip


shape_rule("ImageConnectedComponents")(unchanged)


@shape_rule("BipartiteMatch")
def bipartite_match(call: ShapeCall) -> list[Shape]:
    dims = call.shape(0).dims
    return [Shape((size,)) for size in dims] if dims is not None and len(dims) == 2 else [Shape((None,))] * 2
