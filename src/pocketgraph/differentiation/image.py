"""Gradients of resizing and cropping pictures, and of colors."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import FLOAT

not_differentiable("DecodeJpeg", "DecodePng", "DecodeImage", "DecodeBmp", "DecodeGif", "EncodeJpeg", "EncodePng")


@gradient("ResizeBilinear", "ResizeBicubic")
def resize(op: NodeGradient) -> str | None:
    """Of pictures of floats only, bicubic of 32 and 64 bits: others TensorFlow does not differentiate."""
    dtype = op.builder.dtype(op.inputs[0])
    if not dtype.is_floating or (op.node.op == "ResizeBicubic" and dtype.size == 2):
        return None
    layer = op.attrs("align_corners", "half_pixel_centers")
    return op.add(f"{op.node.op}Grad", op.grad, op.inputs[0], **layer)


@gradient("ResizeNearestNeighbor")
def resize_nearest(op: NodeGradient) -> str:
    image = op.inputs[0]
    static = op.static(image)
    if static.rank == 4 and None not in tuple(static)[1:3]:
        size = op.const(tuple(static)[1:3])
    else:
        size = op.add("StridedSlice", op.add("Shape", image), op.const([1]), op.const([3]), op.const([1]))
    return op.add("ResizeNearestNeighborGrad", op.grad, size, **op.attrs("align_corners", "half_pixel_centers"))


@gradient("ScaleAndTranslate")
def scale_and_translate(op: NodeGradient) -> str | None:
    image, _, scale, translation = op.inputs
    if op.builder.dtype(image).base is not FLOAT:
        return None
    return op.add("ScaleAndTranslateGrad", op.grad, image, scale, translation, **op.attrs("kernel_type", "antialias"))


@gradient("ExtractImagePatches", "ExtractVolumePatches")
def patches(op: NodeGradient) -> str:
    """Each pixel gets the sum of the places that it was taken to, which the patches of the pixels' numbers tell."""
    shape = op.shape_of_input(0)
    rank = op.rank(op.inputs[0])
    sides, flat, rest = op.const([1]), op.const([-1]), op.const([rank - 1])
    space = op.add("StridedSlice", shape, sides, rest, sides)
    one, zero = op.const(1), op.const(0)
    pixels = op.add("Add", op.add("Prod", space, zero), one)
    channels = op.add("StridedSlice", shape, rest, op.const([rank]), sides)
    batch = op.add("StridedSlice", shape, op.const([0]), sides, sides)
    numbers = op.add("Reshape", op.add("Range", one, pixels, one), op.add("ConcatV2", [sides, space, sides], zero))
    layer = op.attrs("ksizes", "strides", "rates", "padding")
    places = op.add("Reshape", op.add(op.node.op, numbers, **layer), flat)
    by_place = op.add("Reshape", op.grad, op.add("ConcatV2", [batch, flat, channels], zero))
    turned = op.const([1, 0, 2])
    summed = op.add("UnsortedSegmentSum", op.add("Transpose", by_place, turned), places, pixels)
    inside = op.add("StridedSlice", summed, sides, op.const([0]), sides, end_mask=1)  # padding has the number 0
    return op.add("Reshape", op.add("Transpose", inside, turned), shape)


@gradient("CropAndResize")
def crop_and_resize(op: NodeGradient) -> list[str | None]:
    image, boxes, indices, _ = op.inputs
    dtype = op.builder.dtype(image)
    layer = op.attrs("method")
    by_image = None
    if dtype.is_floating:
        shape = op.shape(image)
        by_image = op.add("CropAndResizeGradImage", op.grad, boxes, indices, shape, T=dtype.base, **layer)
    # By the boxes it is the gradient of bilinear sampling, as TensorFlow has it, also where the nearest pixel is taken.
    return [by_image, op.add("CropAndResizeGradBoxes", op.grad, op.cast(image, FLOAT), boxes, indices)]
