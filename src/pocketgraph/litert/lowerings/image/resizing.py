"""Lowerings of resizing.

Bicubic, and means over areas, for which LiteRT has no operator, are weighted sums of a few rows, then of a few columns,
in the order in which the reference kernels add.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.kernels.image.resizing import area_weights, cubic_weights, resize_nearest_neighbor
from pocketgraph.kernels.image.warping import axis_weights
from pocketgraph.litert.constant import Array
from pocketgraph.litert.cost_model import MOST_RESIZE_TAPS
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.program import Value


@lowers("ResizeBilinear", "ResizeNearestNeighbor", takes=("float", "uint8", "int32"))
def resize(emit: Emit, node: Node, source: Value) -> Value:
    height, width = (int(d) for d in emit.static(1, "the new size"))
    align, half = bool(node.attr("align_corners", False)), bool(node.attr("half_pixel_centers", False))
    if node.op == "ResizeNearestNeighbor" and source.dtype is INT32:
        return picked(emit, source, (height, width), align, half)
    if source.dtype is not FLOAT and node.op == "ResizeBilinear":
        source = emit.add("CAST", [source], source.shape, FLOAT)
    code = "RESIZE_BILINEAR" if node.op == "ResizeBilinear" else "RESIZE_NEAREST_NEIGHBOR"
    return resized(emit, code, source, (height, width), align, half)


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


FEW_CHANNELS = 8


def _image(emit: Emit) -> tuple[Value, int, int]:
    """The image as floats, and the rows and columns wanted."""
    source = emit.require(emit.input(0), "float", "uint8", "int8", "int32")
    rows, columns = (int(d) for d in emit.static(1, "the new size"))
    if source.dtype is not FLOAT:
        source = emit.add("CAST", [source], source.shape, FLOAT)
    return source, rows, columns


@lowers("ResizeBicubic")
def resize_bicubic(emit: Emit, node: Node) -> Value:
    source, rows, columns = _image(emit)
    if (rows, columns) == source.shape[1:3]:
        return source
    align, half = bool(node.attr("align_corners", False)), bool(node.attr("half_pixel_centers", False))
    if align and half:
        raise emit.unsupported("align_corners together with half_pixel_centers")
    tall = weighted(emit, source, 1, *cubic_weights(source.shape[1], rows, align, half))
    return weighted(emit, tall, 2, *cubic_weights(source.shape[2], columns, align, half))


@lowers("ResizeArea")
def resize_area(emit: Emit, node: Node) -> Value:
    source, rows, columns = _image(emit)
    align = bool(node.attr("align_corners", False))
    down, along = area_weights(source.shape[1], rows, align), area_weights(source.shape[2], columns, align)
    return _weighted_areas(emit, source, down, along, is_tall_first=rows < source.shape[1])


@lowers("ScaleAndTranslate")
def scale_and_translate(emit: Emit, node: Node) -> Value:
    source, *wanted = _image(emit)
    scale, translation = (np.asarray(emit.static(at, "where each pixel goes")) for at in (2, 3))
    kind, antialias = attr_text(node, "kernel_type", "lanczos3"), bool(node.attr("antialias", True))
    try:
        pairs = axis_weights(kind, (wanted[0], wanted[1]), source.shape[1:3], scale, translation, antialias)
    except ValueError as error:
        raise emit.unsupported(str(error)) from error
    return _weighted_areas(emit, source, pairs[0][0], pairs[1][0])


def _weighted_areas(emit: Emit, source: Value, down: Array, along: Array, *, is_tall_first: bool = True) -> Value:
    """Rows weighted by a matrix (wanted, given), and columns by another one."""
    pairs = [(1, *_bands(down)), (2, *_bands(along))]
    if max(weights.shape[1] for _, _, weights in pairs) > MOST_RESIZE_TAPS:
        raise emit.unsupported(f"sums over more than {MOST_RESIZE_TAPS} pixels in a row")
    for axis, places, weights in pairs if is_tall_first else reversed(pairs):
        source = weighted(emit, source, axis, places, weights)
    return source


def _bands(weights: Array) -> tuple[Array, Array]:
    """Of a matrix (wanted, given): the columns in which each row begins to have weights and those that follow, and
    these weights; as many as the longest row has."""
    used = weights != 0
    first = used.argmax(axis=1)
    last = np.where(used.any(axis=1), weights.shape[1] - 1 - used[:, ::-1].argmax(axis=1), first)
    places = first[:, None] + np.arange(int((last - first).max(initial=0)) + 1)
    inside = np.minimum(places, weights.shape[1] - 1)
    found = np.where(places <= last[:, None], np.take_along_axis(weights, inside, axis=1), 0)
    return np.minimum(places, last[:, None]), found


def weighted(emit: Emit, source: Value, axis: int, places: Array, weights: Array) -> Value:
    """Sums of slices along an axis of an image.

    Args:
        source: float, of four dimensions.
        axis: 1 or 2.
        places: the slices that make each slice of the result: integers (slices, taps).
        weights: what each is multiplied by.
    """
    if axis == 2 and source.shape[3] < FEW_CHANNELS:  # slices of a few bytes each would be copied one by one
        turned = weighted(emit, emit.transpose(source, (0, 2, 1, 3)), 1, places, weights)
        return emit.transpose(turned, (0, 2, 1, 3))
    count, taps = places.shape
    shape = tuple(count if index == axis else size for index, size in enumerate(source.shape))
    thin = tuple(count if index == axis else 1 for index in range(len(shape)))
    total: Value | None = None
    for tap in range(taps):
        where = emit.const(places[:, tap], np.int32)
        part = emit.add("GATHER", [source, where], shape, axis=axis, batch_dims=0)
        factor = weights[:, tap].astype(np.float32).reshape(thin)
        if (factor != 1).any():
            part = emit.add("MUL", [part, emit.const(factor)], shape, activation="")
        total = part if total is None else emit.add("ADD", [total, part], shape, activation="")
    assert total is not None
    return total
