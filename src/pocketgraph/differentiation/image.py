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
    layer = op.attrs("align_corners", "half_pixel_centers")
    return op.add("ResizeNearestNeighborGrad", op.grad, _size(op, op.inputs[0]), **layer)


def _size(op: NodeGradient, image: str) -> str:
    """Rows and columns."""
    static = op.static(image)
    if static.rank == 4 and None not in tuple(static)[1:3]:
        return op.const(tuple(static)[1:3])
    return op.add("StridedSlice", op.add("Shape", image), op.const([1]), op.const([3]), op.const([1]))


@gradient("ResizeBilinearGrad", "ResizeBicubicGrad")
def resize_grad(op: NodeGradient) -> str:
    """By the gradient that it hands back, the resizing itself; TensorFlow lets nothing flow."""
    layer = op.attrs("align_corners", "half_pixel_centers")
    return op.add(op.node.op.removesuffix("Grad"), op.grad, _size(op, op.inputs[0]), **layer)


@gradient("ResizeNearestNeighborGrad")
def resize_nearest_grad(op: NodeGradient) -> str:
    layer = op.attrs("align_corners", "half_pixel_centers")
    return op.add("ResizeNearestNeighbor", op.grad, _size(op, op.inputs[0]), **layer)


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


@gradient("RGBToHSV")
def hue_saturation_and_value(op: NodeGradient) -> str:
    """In the sixth of the circle that the largest color V begins, hue moves with f = (next - previous)/(V - least), and
    saturation is (V - least)/V. Of equally large colors red goes before green before blue, of equally small ones the
    other way round."""
    x, last = op.inputs[0], op.const(-1)
    one, nothing = op.number(1), op.number(0)

    def chosen(indices: str) -> str:
        return op.add("OneHot", indices, op.const(3), one, nothing, axis=-1)

    greatest = chosen(op.add("ArgMax", x, last))
    backwards = op.add("ArgMin", op.add("ReverseV2", x, op.const([-1])), last)
    least = op.add("ReverseV2", chosen(backwards), op.const([-1]))
    value, low = (op.add(kind, x, op.const([-1]), keep_dims=True) for kind in ("Max", "Min"))
    chroma = op.add("Sub", value, low)
    turn = op.add("Sub", *(op.add("Roll", greatest, op.const(step), last) for step in (1, 2)))
    sector = op.add("DivNoNan", op.add("Sum", op.mul(x, turn), op.const([-1]), keep_dims=True), chroma)
    by_hue = op.add("DivNoNan", op.add("Add", turn, op.mul(sector, op.add("Sub", least, greatest))), chroma)
    by_saturation = op.add(
        "Sub", op.mul(greatest, op.add("DivNoNan", low, op.add("Square", value))), op.add("DivNoNan", least, value)
    )
    hue = op.add("Split", last, op.grad, num_split=3)
    is_lit, is_positive = (op.cast(op.add("Greater", ref, nothing), op.dtype) for ref in (value, x))
    parts = (
        op.mul(hue, op.number(1 / 6), is_lit, by_hue),
        op.mul(f"{hue}:1", is_positive, by_saturation),
        op.mul(f"{hue}:2", greatest),
    )
    return op.add("AddN", parts)
