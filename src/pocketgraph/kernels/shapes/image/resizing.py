"""Shape rules of pictures resized, cropped and warped."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import merge_dim, of_rank
from pocketgraph.kernels.shapes.common_rules import of_input, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("ImageProjectiveTransform")(unchanged)
shape_rule("ResizeBicubicGrad")(of_input(1, rank=4))
shape_rule("CropAndResizeGradBoxes")(of_input(2, rank=2))


@shape_rule("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "ExtractGlimpse")
def resize(call: ShapeCall) -> Shape:
    batch, _, _, channels = of_rank(call.shape(0), 4)
    height, width = of_rank(call.as_shape(1), 2)
    return Shape((batch, height, width, channels))


@shape_rule("CropAndResize")
def crop_and_resize(call: ShapeCall) -> Shape:
    channels = of_rank(call.shape(0), 4)[3]
    boxes = merge_dim(of_rank(call.shape(1), 2)[0], of_rank(call.shape(2), 1)[0])
    height, width = of_rank(call.as_shape(3), 2)
    return Shape((boxes, height, width, channels))


@shape_rule("ResizeBilinearGrad", "ResizeNearestNeighborGrad")
def of_resizing(call: ShapeCall) -> Shape:
    grad = of_rank(call.shape(0), 4)
    if call.node.op == "ResizeBilinearGrad":
        rows, columns = of_rank(call.shape(1), 4)[1:3]
    else:
        rows, columns = of_rank(call.as_shape(1), 2)
    return Shape((grad[0], rows, columns, grad[3]))


@shape_rule("CropAndResizeGradImage")
def of_a_cropped_image(call: ShapeCall) -> Shape:
    return Shape(of_rank(call.as_shape(3), 4))


@shape_rule("Resampler", "Addons>Resampler")
def resampler(call: ShapeCall) -> Shape:
    data, places = call.shape(0), call.shape(1)
    if data.dims is None or places.dims is None or not places.dims:
        return UNKNOWN
    return Shape((*places.dims[:-1], data.dims[-1]))
