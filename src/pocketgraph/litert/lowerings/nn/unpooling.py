"""Lowerings of max pooling that tells where the largest lay, and of un-pooling, which puts values back there.

LiteRT's pooling does not tell places, so that the pixels of each window are compared as TensorFlow does it: row by row,
and of equals the first counts. Comparing goes over the columns of a window and then over its rows, both as slices that
lie in one piece; un-pooling goes the same way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import Node, canonical
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.litert.constant import Array
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.image_layout import spatial
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.nn.convolution import window_shape
from pocketgraph.litert.lowerings.nn.pooled_places import are_places, indices_of
from pocketgraph.litert.lowerings.nn.pooling import pooled
from pocketgraph.litert.lowerings.pieces import cut, pad, sum_of
from pocketgraph.litert.operands import attr_list, attr_text
from pocketgraph.litert.program import Value


class Windows(NamedTuple):
    """Windows that lie side by side, the first one at the image's first pixel.

    Attributes:
        image: the image's shape: batch, height, width, channels.
        size: rows and columns of a window.
        counts: how many windows lie below and beside each other.
    """

    image: tuple[int, int, int, int]
    size: tuple[int, ...]
    counts: tuple[int, int]

    @property
    def reach(self) -> tuple[int, int, int, int]:
        """The shape of what the windows cover: of the image cut or extended at its ends."""
        batch, _, _, depth = self.image
        return batch, self.counts[0] * self.size[0], self.counts[1] * self.size[1], depth

    def fitted(self, emit: Emit, image: Value) -> Value:
        """The image in the windows' ``reach``; what lies outside of it is never the largest."""
        return _cut_and_padded(emit, image, self.image, self.reach, float("-inf"))

    def returned(self, emit: Emit, covered: Value) -> Value:
        """What lies in the windows' ``reach`` in the image's shape; zeros where there is no window."""
        return _cut_and_padded(emit, covered, self.reach, self.image)

    def places(self, row: int, column: int) -> Array:
        """The position of one pixel of each window in the image (batch, height, width and channels flat); that of the
        window's first pixel where the other lies outside of the image: int64 (batch, windows…, channels)."""
        batch, height, width, depth = self.image
        rows = np.arange(self.counts[0])[:, None] * self.size[0]
        columns = np.arange(self.counts[1])[None, :] * self.size[1]
        inside = (rows + row < height) & (columns + column < width)
        pixels = np.where(inside, (rows + row) * width + columns + column, rows * width + columns)
        images = np.arange(batch).reshape(-1, 1, 1, 1) * (height * width * depth)
        return np.asarray(images + pixels[None, :, :, None] * depth + np.arange(depth), np.int64)


def _cut_and_padded(
    emit: Emit, value: Value, given: Sequence[int], wanted: Sequence[int], fill: float | None = None
) -> Value:
    """An image of the shape ``given``, cut or extended at its ends to the shape ``wanted``."""
    smaller = [min(sizes) for sizes in zip(given, wanted, strict=True)]
    borders = np.array([(0, size - rest) for size, rest in zip(wanted, smaller, strict=True)], np.int32)
    return pad(emit, cut(emit, value, [0] * 4, smaller), borders, fill)


def windows_of(emit: Emit, node: Node, image: tuple[int, ...]) -> Windows:
    """The windows of a MaxPoolWithArgmax.

    Raises:
        Unsupported: they overlap, or lie apart, or begin outside of the image.
    """
    size = spatial(emit, attr_list(node, "ksize"), "NHWC", "ksize")
    strides = spatial(emit, attr_list(node, "strides"), "NHWC", "strides")
    padding = attr_text(node, "padding")
    if len(image) != 4 or padding not in ("SAME", "VALID"):
        raise emit.unsupported(f"the places of the largest of {list(image)} with {padding} padding")
    counts = window_shape(image[1:3], size, strides, (1, 1), padding)
    missing = [count * extent - length for count, extent, length in zip(counts, size, image[1:3], strict=True)]
    if size != strides or max(missing) > 1 or min(counts) < 1:  # of two missing pixels one is missing in front
        raise emit.unsupported("the places of the largest in windows that do not lie side by side")
    return Windows((image[0], image[1], image[2], image[3]), size, counts)


def compared(emit: Emit, image: Value, windows: Windows) -> tuple[list[Value], list[Value]]:
    """Compares the pixels of each window of a float image, column by column of each row, then row by row.

    Returns:
        Which pixels are the largest so far: for each but the first column, and for each but the first row.
    """
    batch, tall, _, depth = windows.reach
    below, beside = windows.counts
    fitted = windows.fitted(emit, image)
    by_columns = emit.reshape(fitted, (batch * tall * beside, windows.size[1] * depth))
    largest, columns = tournament(emit, _equal_parts(emit, by_columns, windows.size[1]))
    by_rows = emit.reshape(largest, (batch * below, windows.size[0] * beside * depth))
    _, rows = tournament(emit, _equal_parts(emit, by_rows, windows.size[0]))
    return columns, rows


def tournament(emit: Emit, parts: Sequence[Value]) -> tuple[Value, list[Value]]:
    """The largest of each element, and for each part but the first whether it surpasses all before it."""
    largest, surpassing = parts[0], []
    for part in parts[1:]:
        surpassing.append(emit.add("GREATER", [part, largest], part.shape, BOOL))
        largest = emit.add("MAXIMUM", [largest, part], part.shape)
    return largest, surpassing


def _equal_parts(emit: Emit, value: Value, count: int) -> list[Value]:
    """A matrix cut into ``count`` parts side by side."""
    rows, columns = value.shape
    size = columns // count
    return [cut(emit, value, [0, part * size], [rows, size]) for part in range(count)]


@lowers("MaxPoolWithArgmax", takes=("float",))
def max_pool_with_argmax(emit: Emit, node: Node, source: Value) -> None:
    windows = windows_of(emit, node, source.shape)
    batch, height, width, depth = windows.image
    below, beside = windows.counts
    shape = (batch, below, beside, depth)
    emit.result(pooled(emit, "MAX_POOL_2D", source, windows.size, windows.size, attr_text(node, "padding")), 0)
    over_columns, over_rows = compared(emit, source, windows)
    column = _numbers(emit, over_columns, (batch * windows.reach[1] * beside, depth), depth)
    by_rows = emit.reshape(column, (batch * below, windows.size[0] * beside * depth))
    rows = _equal_parts(emit, by_rows, windows.size[0])
    place = rows[0]
    for is_larger, other in zip(over_rows, rows[1:], strict=True):
        place = emit.add("SELECT_V2", [is_larger, other, place], place.shape, INT32)
    place = sum_of(emit, place, _numbers(emit, over_rows, place.shape, width * depth))
    place = emit.reshape(place, shape)
    first = np.arange(beside)[:, None] * (windows.size[1] * depth) + np.arange(depth)
    place = sum_of(emit, place, emit.const(first.reshape(1, 1, beside, depth), np.int32))
    above = np.arange(below) * (windows.size[0] * width * depth)
    place = sum_of(emit, place, emit.const(above.reshape(1, below, 1, 1), np.int32))
    if node.attr("include_batch_in_index", False):
        images = np.arange(batch) * (height * width * depth)
        place = sum_of(emit, place, emit.const(images.reshape(batch, 1, 1, 1), np.int32))
    dtype = node.attr("Targmax", INT64)
    if dtype is not INT32:
        place = emit.add("CAST", [place], shape, dtype)
    emit.result(place, 1)


def _numbers(emit: Emit, surpassing: Sequence[Value], shape: tuple[int, ...], step: int) -> Value:
    """``step`` times the number of the part that is the largest (see ``tournament``): int32."""
    if not surpassing:
        return emit.const(np.zeros(shape, np.int32))
    number: Value | None = None
    for part, is_larger in enumerate(surpassing, 1):
        own = emit.add("CAST", [is_larger], is_larger.shape, INT32)
        own = emit.add("MUL", [own, emit.const(part * step, np.int32)], own.shape, activation="")
        number = own if number is None else emit.add("MAXIMUM", [number, own], own.shape)
    assert number is not None
    return number


def unpooled(emit: Emit, pooled: Value, found: tuple[list[Value], list[Value]], windows: Windows) -> Value:
    """Each value at its window's largest pixel (see ``compared``), zeros elsewhere, in the image's shape."""
    batch, tall, _, depth = windows.reach
    below, beside = windows.counts
    by_rows = _spread(emit, emit.reshape(pooled, (batch * below, beside * depth)), found[1])
    by_columns = _spread(emit, emit.reshape(by_rows, (batch * tall * beside, depth)), found[0])
    return windows.returned(emit, emit.reshape(by_columns, windows.reach))


def shares(emit: Emit, value: Value, surpassing: Sequence[Value]) -> list[Value]:
    """The parts of a ``tournament``: the value in the largest one and zeros in the others."""
    if not surpassing:
        return [value]
    nothing = emit.add("ZEROS_LIKE", [value], value.shape)
    parts: list[Value] = []
    for is_larger in reversed(surpassing):
        parts.insert(0, emit.add("SELECT_V2", [is_larger, value, nothing], value.shape, value.dtype))
        value = emit.add("SELECT_V2", [is_larger, nothing, value], value.shape, value.dtype)
    return [value, *parts]


def _spread(emit: Emit, value: Value, surpassing: Sequence[Value]) -> Value:
    """The parts of a ``tournament`` side by side, the value in the largest one and zeros in the others."""
    return emit.concatenated(shares(emit, value, surpassing), 1)


def origin_of_places(emit: Emit, updates: Value, shape: tuple[int, ...]) -> tuple[Value, Windows] | None:
    """The image, and its windows, when a ScatterNd puts each of ``updates`` where its window's largest pixel was."""
    indices = indices_of(emit, emit.ref(0))
    if indices is None:
        return None
    ref = canonical(indices.pool.data_inputs[0])
    if ref not in emit.values and not emit.trial:  # the image is not in this part of the graph
        return None
    image = emit.value(ref)
    windows = windows_of(emit, indices.pool, image.shape)
    if image.dtype is not FLOAT or int(np.prod(shape)) != image.size or min(shape, default=0) < 1:
        return None
    if updates.size != image.shape[0] * windows.counts[0] * windows.counts[1] * image.shape[3]:
        return None
    choices = [windows.places(row, column) for row in range(windows.size[0]) for column in range(windows.size[1])]
    return (image, windows) if are_places(indices, choices, shape) else None
