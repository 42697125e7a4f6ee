"""Gradients of resizing and cropping pictures, and of colors."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import FLOAT

not_differentiable("DecodeJpeg", "DecodePng", "DecodeImage", "DecodeBmp", "DecodeGif", "EncodeJpeg", "EncodePng")


@gradient("ResizeBilinear", "ResizeBicubic")
def resize(op: NodeGradient) -> str | None:
    """Of pictures of floats only: TensorFlow resizes others to floats and differentiates nothing."""
    if not op.builder.dtype(op.inputs[0]).is_floating:
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
