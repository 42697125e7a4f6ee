"""Lowerings of resizing."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.kernels.image.resizing import resize_nearest_neighbor
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.program import Value


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
