"""CropAndResize: boxes of images, each resized to one size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, kernel

FLOAT = np.float32


def samples(start: Array, end: Array, size: int, count: int) -> Array:
    """(boxes, count) positions in an axis of ``size`` pixels, for boxes given in fractions of it."""
    last = FLOAT(size - 1)
    if count > 1:
        step = (end - start) * last / FLOAT(count - 1)
        return np.asarray(start[:, None] * last + np.arange(count, dtype=FLOAT) * step[:, None])
    return np.asarray(FLOAT(0.5) * (start + end) * last)[:, None]


@kernel("CropAndResize")
def crop_and_resize(
    image: Array,
    boxes: Array,
    box_ind: Array,
    crop_size: Array,
    *,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    context: Context | None = None,
) -> Array:
    """float32 (boxes, rows, columns, channels): each box (y1, x1, y2, x2, in fractions of the image) resized."""
    ways = (_by_windows, _by_products, _by_pairs)
    return _cropped(image, boxes, box_ind, crop_size, ways, method, extrapolation_value, context)


def _without_products(image: Array, boxes: Array, box_ind: Array, crop_size: Array, **attributes: Any) -> Array:
    """``crop_and_resize`` by passes over all pixels of the result."""
    return _cropped(image, boxes, box_ind, crop_size, (), **attributes)


BY_PRODUCTS = "crops_by_products"
"""The pass that resizes boxes by products of matrices."""
crop_and_resize.without = {BY_PRODUCTS: _without_products}  # type: ignore[attr-defined]


def _cropped(
    image: Array,
    boxes: Array,
    box_ind: Array,
    crop_size: Array,
    ways: Sequence[Callable[[Array, Array, Array, Array, Array], bool]],
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    context: Context | None = None,
) -> Array:
    """The boxes, bilinearly in the first of these ways that is for them."""
    rows, columns = ints(crop_size)
    count, (height, width, depth) = boxes.shape[0], image.shape[1:]
    if boxes.shape != (count, 4) or box_ind.shape != (count,) or rows < 1 or columns < 1:
        raise ValueError(f"boxes {list(boxes.shape)}, box_ind {list(box_ind.shape)}, crop size {[rows, columns]}")
    if height < 1 or width < 1:
        raise ValueError(f"image dimensions must be positive, not {[height, width]}")
    if not bool(np.isfinite(boxes).all()):
        raise ValueError("Boxes contains at least one element that is not finite")
    if bool(np.any((box_ind < 0) | (box_ind >= image.shape[0]))):
        raise ValueError(f"box_index has values outside [0, {image.shape[0]})")
    shape = reserve((count, rows, columns, depth), FLOAT)
    result = recycled(context, shape, FLOAT) if context is not None else np.empty(shape, FLOAT)
    down = samples(boxes[:, 0], boxes[:, 2], height, rows)
    along = samples(boxes[:, 1], boxes[:, 3], width, columns)
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"method must be bilinear or nearest, not '{method}'")
    outside = ~((down >= 0) & (down <= height - 1))[:, :, None] | ~((along >= 0) & (along <= width - 1))[:, None, :]
    down, along = _within(down, height), _within(along, width)
    which = box_ind.astype(np.int64)
    quick = method == "bilinear" and image.dtype == FLOAT
    if result.size and not (quick and any(way(image, which, down, along, result) for way in ways)):
        block = max(1, BOX_BLOCK // max(1, rows * columns * depth))
        for start in range(0, count, block):
            some = slice(start, start + block)
            _resampled(image, which[some], down[some], along[some], method, result[some])
    if outside.any():
        result[outside] = FLOAT(extrapolation_value)
    return result


def _within(places: Array, size: int) -> Array:
    """The nearest places inside of an axis; what is no number becomes its beginning."""
    return np.asarray(np.fmin(np.fmax(places, FLOAT(0)), FLOAT(size - 1)))


MULTIPLIED = 50
"""Multiplications of a product of matrices that take as long as one element of the result takes pixel by pixel."""


def _by_products(image: Array, which: Array, y: Array, x: Array, result: Array) -> bool:
    """Resamples bilinearly into ``result`` by products with weights, most of them zeros, where images are small.

    The arguments are those of ``_resampled``. Says whether it was done; it is not where zero times a pixel is no zero.
    """
    count, rows, columns, depth = result.shape
    height, width = image.shape[1:3]
    if height * columns * (width + rows) > MULTIPLIED * rows * columns or image.shape[0] > MOST_IMAGES:
        return False
    if not _is_finite(image):
        return False
    for number in range(image.shape[0]):
        boxes = np.flatnonzero(which == number)
        if len(boxes) == count:
            _weighted(image[number], y, x, result)
        elif len(boxes):
            found = np.empty((len(boxes), rows, columns, depth), FLOAT)
            _weighted(image[number], y[boxes], x[boxes], found)
            result[boxes] = found
    return True


MOST_IMAGES = 64  # of a batch


def _is_finite(image: Array) -> bool:
    return bool(np.isfinite(image.sum())) or bool(np.isfinite(image).all())


ALONE = 1 << 18
"""Multiplications of a product up to which OpenBLAS computes with one thread; waking others takes longer than these."""


def _weighted(image: Array, y: Array, x: Array, out: Array) -> None:
    """Fills ``out`` (boxes, rows, columns, channels) with one image at these rows and columns."""
    height, width, depth = image.shape
    count, rows = y.shape
    columns = x.shape[1]
    by_row, by_column = _weights(y, height), _weights(x, width)
    flat = out.reshape(count, rows, columns * depth)
    boxes = max(1, ALONE // (columns * width * depth))
    channels = max(1, ALONE // (rows * height))
    for start in range(0, count, boxes):
        some = slice(start, start + boxes)
        taken = len(by_row[some])
        lines = np.empty((height, taken * columns, depth), FLOAT)
        np.matmul(by_column[some].reshape(-1, width), image, out=lines)  # for each row of the image all columns
        across = lines.reshape(height, taken, columns * depth).transpose(1, 0, 2)
        for first in range(0, columns * depth, channels):
            few = slice(first, first + channels)
            np.matmul(by_row[some], across[:, :, few], out=flat[some, :, few])


def _weights(places: Array, length: int) -> Array:
    """(…, length): how much each pixel of an axis counts at these places."""
    weights = places[..., None] - np.arange(length, dtype=FLOAT)
    np.abs(weights, out=weights)
    np.subtract(FLOAT(1), weights, out=weights)
    return np.asarray(np.maximum(weights, FLOAT(0), out=weights))


WINDOW_MULTIPLIED = 40
"""Multiplications of such products, likewise, where they go over a box's part of the image."""
LEAST_WINDOW = 1 << 13  # elements of a box's result, in which calling NumPy for it alone does not count


FEWER_CALLS = 4
"""How many times as much may be multiplied where it takes no call for each box."""


def _by_windows(image: Array, which: Array, y: Array, x: Array, result: Array) -> bool:
    """As ``_by_products``, box by box, over the part of the image that the box lies in."""
    rows, columns, depth = result.shape[1:]
    _, height, width, _ = image.shape
    if rows * columns * depth < LEAST_WINDOW:
        return False
    (top, high), (left, wide) = _extent(y, height), _extent(x, width)
    multiplied = float((high * (wide + rows)).mean())
    if multiplied > WINDOW_MULTIPLIED * rows or FEWER_CALLS * multiplied > height * (width + rows):
        return False
    by_row = _weights(y - top[:, None].astype(FLOAT), int(high.max()))
    by_column = _weights(x - left[:, None].astype(FLOAT), int(wide.max()))
    places = np.stack([which, top, high, left, wide], axis=1).tolist()
    flat = result.reshape(-1, rows, columns * depth)
    for box, (number, first, h, start, w) in enumerate(places):
        made = np.empty((h, columns, depth), FLOAT)
        part = image[number, first : first + h, start : start + w]
        np.matmul(by_column[box, :, :w], part, out=made)  # for each row of the image all columns
        lines = made.reshape(h, columns * depth)
        step = max(depth, ALONE // (rows * h))
        for begin in range(0, columns * depth, step):
            some = slice(begin, begin + step)
            np.matmul(by_row[box, :, :h], lines[:, some], out=flat[box, :, some])
    return _has_no_other(image, result)


def _has_no_other(image: Array, result: Array) -> bool:
    """Whether nothing but finite numbers was multiplied: zero times infinity is no zero."""
    return (image.size < result.size and _is_finite(image)) or _is_finite(result)


LEAST_DEPTH = 96  # channels, from which a product for each pixel of the result is quicker than passes over all
PAIR_BLOCK = 1 << 16  # elements that are gathered at once, likewise


def _by_pairs(image: Array, which: Array, y: Array, x: Array, result: Array) -> bool:
    """As ``_by_products``, pixel by pixel: two pairs of neighbours times four weights."""
    rows, columns, depth = result.shape[1:]
    _, height, width, _ = image.shape
    if depth < LEAST_DEPTH or width < 2:
        return False
    pixels = np.ascontiguousarray(image).reshape(-1, depth)
    neighbours = np.lib.stride_tricks.as_strided(pixels, (len(pixels) - 1, 2 * depth), pixels.strides)
    top, left = np.floor(y), np.minimum(np.floor(x), FLOAT(width - 2))
    below = np.minimum(top + 1, FLOAT(height - 1))
    down, along = y - top, x - left
    both_rows = np.stack([top, below], axis=-1).astype(np.int64) + (which * height)[:, None, None]
    by_row, by_column = np.stack([1 - down, down], axis=-1), np.stack([1 - along, along], axis=-1)
    step = max(1, PAIR_BLOCK // (4 * depth))
    boxes = max(1, MOST_PLACES // (rows * columns))
    for first in range(0, len(result), boxes):
        some = slice(first, first + boxes)
        places = both_rows[some, :, None, :] * width + left[some, None, :, None].astype(np.int64)
        places = places.reshape(-1, 2)
        weights = by_row[some, :, None, :, None] * by_column[some, None, :, None, :]
        weights = weights.reshape(-1, 1, 4)
        out = result[some].reshape(-1, 1, depth)
        for begin in range(0, len(out), step):
            few = slice(begin, begin + step)
            np.matmul(weights[few], neighbours[places[few]].reshape(-1, 4, depth), out=out[few])
    return _has_no_other(image, result)


MOST_PLACES = 1 << 15  # pixels of results whose places and weights are worked out at once


def _extent(places: Array, size: int) -> tuple[Array, Array]:
    """(the first pixel, how many) along an axis that each box's places (boxes, count) lie between."""
    first = np.floor(places.min(axis=1)).astype(np.int64)
    return first, np.asarray(np.minimum(np.floor(places.max(axis=1)).astype(np.int64) + 2, size) - first)


BOX_BLOCK = 1 << 16  # elements of the boxes that are resized at once: what a processor's cache holds


def _resampled(image: Array, which: Array, y: Array, x: Array, method: str, out: Array) -> None:
    """Fills ``out`` (boxes, rows, columns, channels) with image ``which`` (boxes,) at rows ``y`` (boxes, rows) and
    columns ``x``."""
    _, height, width, depth = image.shape
    pixels = image.reshape(-1, depth)
    first_row = (which * height)[:, None]

    def taken(row: Array, column: Array, found: Array) -> None:
        places = ((first_row + row) * width)[:, :, None] + column[:, None, :]
        if pixels.dtype == FLOAT:
            pixels.take(places, 0, out=found, mode="clip")  # all are inside; clipping is what needs no copy
        else:
            found[...] = widened(pixels.take(places, 0))

    if method == "nearest":
        taken(np.floor(y + 0.5).astype(np.int64), np.floor(x + 0.5).astype(np.int64), out)
        return
    top, left = np.floor(y), np.floor(x)
    by_row, by_column = (y - top)[:, :, None, None], (x - left)[:, None, :, None]
    above, below = top.astype(np.int64), np.ceil(y).astype(np.int64)
    before, after = left.astype(np.int64), np.ceil(x).astype(np.int64)

    def along(row: Array, found: Array) -> None:
        """What lies between the two columns in these rows."""
        corner = np.empty(found.shape, FLOAT)
        taken(row, before, corner)
        taken(row, after, found)
        found -= corner
        found *= by_column
        found += corner

    upper = np.empty(out.shape, FLOAT)
    rows = y.shape[1]
    if height < 2 * rows:  # each row of the image once for every box, instead of two for every row of the result
        whole = np.empty((y.shape[0], height, x.shape[1], depth), FLOAT)
        along(np.broadcast_to(np.arange(height), (y.shape[0], height)), whole)
        lines = whole.reshape(-1, x.shape[1] * depth)
        offset = (np.arange(y.shape[0]) * height)[:, None]
        shape = (y.shape[0], rows, x.shape[1] * depth)
        lines.take(offset + above, 0, out=upper.reshape(shape), mode="clip")
        lines.take(offset + below, 0, out=out.reshape(shape), mode="clip")
    else:
        along(above, upper)
        along(below, out)
    out -= upper
    out *= by_row
    out += upper
