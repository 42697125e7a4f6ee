"""Lowerings of resizing and of moving pixels between space, depth and batch."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.runtime.engines.litert.emitter import Emit, attr_text, lowers
from pocketgraph.runtime.engines.litert.lower_nn import convolve, data_format, image, mirror_pad, yield_image
from pocketgraph.runtime.engines.litert.program import Value


@lowers("ResizeBilinear", "ResizeNearestNeighbor")
def resize(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), "float", "uint8", "int32")
    if len(source.shape) != 4:
        raise emit.unsupported(f"an image of rank {len(source.shape)}")
    if source.dtype is not FLOAT and (node.op == "ResizeBilinear" or source.dtype is INT32):
        if node.op != "ResizeBilinear":
            raise emit.unsupported(f"LiteRT's operator does not take {source.dtype.name}")
        source = emit.add("CAST", [source], source.shape, FLOAT)
    height, width = (int(d) for d in emit.static(1, "the new size"))
    align, half = bool(node.attr("align_corners", False)), bool(node.attr("half_pixel_centers", False))
    code = "RESIZE_BILINEAR" if node.op == "ResizeBilinear" else "RESIZE_NEAREST_NEIGHBOR"
    emit.result(resized(emit, code, source, (height, width), align, half))


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
    source = image(emit, 0, layout)
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
    source = emit.require(emit.input(0), "float")
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
    source = image(emit, 0, "NHWC")
    borders = np.asarray(emit.static(1, "the paddings or crops"), np.int32).reshape(2, 2)
    block = np.full(2, int(node.attr("block_size", 0)), np.int32)
    code = "SPACE_TO_BATCH_ND" if node.op == "SpaceToBatch" else "BATCH_TO_SPACE_ND"
    shape = emit.output()[1]
    emit.result(emit.add(code, [source, emit.const(block), emit.const(borders)], shape))
