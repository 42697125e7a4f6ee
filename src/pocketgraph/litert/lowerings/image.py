"""Lowerings of resizing and of moving pixels between space, depth and batch."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.kernels.image.resizing import resize_nearest_neighbor
from pocketgraph.litert.emitter import Emit, attr_text
from pocketgraph.litert.images import data_format, image, yield_image
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.nn import convolve, mirror_pad
from pocketgraph.litert.program import Value

PIXELS = ("float", "int32", "int64", "uint8", "int8")
"""Element types that LiteRT moves between space, depth and batch."""


@lowers("ResizeBilinear", "ResizeNearestNeighbor")
def resize(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), "float", "uint8", "int32")
    if len(source.shape) != 4:
        raise emit.unsupported(f"an image of rank {len(source.shape)}")
    height, width = (int(d) for d in emit.static(1, "the new size"))
    align, half = bool(node.attr("align_corners", False)), bool(node.attr("half_pixel_centers", False))
    if node.op == "ResizeNearestNeighbor" and source.dtype is INT32:
        emit.result(picked(emit, source, (height, width), align, half))
        return
    if source.dtype is not FLOAT and node.op == "ResizeBilinear":
        source = emit.add("CAST", [source], source.shape, FLOAT)
    code = "RESIZE_BILINEAR" if node.op == "ResizeBilinear" else "RESIZE_NEAREST_NEIGHBOR"
    emit.result(resized(emit, code, source, (height, width), align, half))


def picked(emit: Emit, source: Value, size: tuple[int, int], align: bool, half: bool) -> Value:
    """The nearest pixels of an NHWC image of a type that LiteRT's resizing does not take: rows, then columns."""
    for axis, count in zip((1, 2), size, strict=True):
        numbers = np.arange(source.shape[axis], dtype=np.int32).reshape(1, -1, 1, 1)
        places = resize_nearest_neighbor(numbers, np.array([count, 1]), align_corners=align, half_pixel_centers=half)
        shape = (*source.shape[:axis], count, *source.shape[axis + 1 :])
        source = emit.add("GATHER", [source, emit.const(places.reshape(-1))], shape, axis=axis, batch_dims=0)
    return source


def resized(emit: Emit, code: str, source: Value, size: tuple[int, int], align: bool, half: bool) -> Value:
    """An NHWC image in another size."""
    if align and half:
        raise emit.unsupported("align_corners together with half_pixel_centers")
    shape = (source.shape[0], *size, source.shape[3])
    operand = emit.const(size, np.int32)
    return emit.add(code, [source, operand], shape, align_corners=align, half_pixel_centers=half)


@lowers("FusedResizeAndPadConv2D")
def fused_resize_and_pad_conv2d(emit: Emit, node: Node) -> None:
    """Resizing, mirror padding and a convolution in one, as optimize_for_inference makes them."""
    source = image(emit, 0, "NHWC")
    height, width = (int(d) for d in emit.static(1, "the new size"))
    pairs = np.asarray(emit.static(2, "the paddings"), np.int32)
    kernel = emit.require(emit.input(3), "float")
    align = bool(node.attr("resize_align_corners", False))
    larger = resized(emit, "RESIZE_BILINEAR", source, (height, width), align, half=False)
    padded = mirror_pad(emit, larger, pairs, attr_text(node, "mode"))
    emit.result(convolve(emit, node, padded, kernel, attr_text(node, "padding"), "NHWC"))


@lowers("DepthToSpace", "SpaceToDepth")
def depth_and_space(emit: Emit, node: Node) -> None:
    layout = data_format(emit, node)
    source = image(emit, 0, layout, PIXELS)
    block = int(node.attr("block_size", 0))
    batch, height, width, depth = source.shape
    if block < 2:
        raise emit.unsupported(f"a block size of {block}")
    if node.op == "DepthToSpace":
        result = emit.add(
            "DEPTH_TO_SPACE", [source], (batch, height * block, width * block, depth // block**2), block_size=block
        )
    else:
        result = emit.add(
            "SPACE_TO_DEPTH", [source], (batch, height // block, width // block, depth * block**2), block_size=block
        )
    yield_image(emit, result, layout)


@lowers("SpaceToBatchND", "BatchToSpaceND")
def batch_and_space(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *PIXELS)
    block = np.asarray(emit.static(1, "the block shape"), np.int32).reshape(-1)
    borders = np.asarray(emit.static(2, "the paddings or crops"), np.int32).reshape(-1, 2)
    to_batch = node.op == "SpaceToBatchND"
    if (len(block), len(source.shape)) not in ((2, 4), (1, 3)):
        raise emit.unsupported(f"{node.op} of rank {len(source.shape)} with {len(block)} block sizes")
    code = "SPACE_TO_BATCH_ND" if to_batch else "BATCH_TO_SPACE_ND"
    shape = emit.output()[1]
    emit.result(emit.add(code, [source, emit.const(block), emit.const(borders)], shape))


@lowers("SpaceToBatch", "BatchToSpace")
def old_batch_and_space(emit: Emit, node: Node) -> None:
    source = image(emit, 0, "NHWC", PIXELS)
    borders = np.asarray(emit.static(1, "the paddings or crops"), np.int32).reshape(2, 2)
    block = np.full(2, int(node.attr("block_size", 0)), np.int32)
    code = "SPACE_TO_BATCH_ND" if node.op == "SpaceToBatch" else "BATCH_TO_SPACE_ND"
    shape = emit.output()[1]
    emit.result(emit.add(code, [source, emit.const(block), emit.const(borders)], shape))
