"""Images resized as TensorFlow does it: bilinear, nearest, bicubic and area, with both conventions of pixel centers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.registry import kernel

CUBIC_STEPS = 1 << 10
"""Bicubic weights are looked up in a table of this many steps a pixel."""

FLOAT = np.float32


def _target(images: Array, size: Array, align_corners: bool, half_pixel_centers: bool) -> tuple[int, int]:
    """(rows, columns) of the result, checked."""
    if images.ndim != 4:
        raise ValueError(f"input must be 4-dimensional, not {list(images.shape)}")
    wanted = ints(size)
    if len(wanted) != 2 or min(wanted) < 1 or 0 in images.shape[1:]:
        raise ValueError(f"an image of {list(images.shape[1:])} cannot be resized to {list(wanted)}")
    if align_corners and half_pixel_centers:
        raise ValueError("If half_pixel_centers is True, align_corners must be False.")
    reserve((images.shape[0], *wanted, images.shape[3]), np.dtype(np.float32))
    reserve((max(wanted),), np.int64)  # where pixels lie is computed also for no pictures
    return wanted[0], wanted[1]


def scale_of(size: int, wanted: int, align_corners: bool) -> Any:
    """How many input pixels one output pixel stands for, in float32."""
    if align_corners and wanted > 1:
        return FLOAT(size - 1) / FLOAT(wanted - 1)
    return FLOAT(size) / FLOAT(wanted)


def positions(size: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """Where each output pixel lies in the input, in float32."""
    scale = scale_of(size, wanted, align_corners)
    places = np.arange(wanted, dtype=FLOAT)
    if half_pixel_centers:
        return np.asarray((places + FLOAT(0.5)) * scale - FLOAT(0.5))
    return np.asarray(places * scale)


def neighbours(size: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> tuple[Array, Array, Array]:
    """(lower index, upper index, share of the upper one) for each output pixel."""
    places = positions(size, wanted, align_corners, half_pixel_centers)
    floor = np.floor(places)
    lower = np.maximum(floor.astype(np.int64), 0)
    upper = np.minimum(np.ceil(places).astype(np.int64), size - 1)
    return np.minimum(lower, size - 1), np.maximum(upper, 0), np.asarray(places - floor)


@kernel("ResizeBilinear")
def resize_bilinear(
    images: Array, size: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    """float32 (images, rows, columns, channels); columns are blended before rows, in float32."""
    rows, columns = _target(images, size, align_corners, half_pixel_centers)
    if (rows, columns) == images.shape[1:3]:
        return images.astype(FLOAT)
    x = images.astype(FLOAT, copy=False)
    top, bottom, down = neighbours(x.shape[1], rows, align_corners, half_pixel_centers)
    left, right, along = neighbours(x.shape[2], columns, align_corners, half_pixel_centers)
    along, down = along.reshape(1, 1, -1, 1), down.reshape(1, -1, 1, 1)

    def blended(some: Array) -> Array:
        starts, result = some.take(left, 2), some.take(right, 2)
        result -= starts
        result *= along
        result += starts
        return result

    if 2 * rows < x.shape[1]:  # most rows are not looked at
        upper, result = blended(x.take(top, 1)), blended(x.take(bottom, 1))
    else:
        whole = blended(x)
        upper, result = whole.take(top, 1), whole.take(bottom, 1)
    result -= upper
    result *= down
    result += upper
    return result


@kernel("ResizeBilinearGrad")
def resize_bilinear_grad(
    grads: Array, original_image: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    if align_corners and half_pixel_centers:
        raise ValueError("If half_pixel_centers is True, align_corners must be False.")
    rows, columns = original_image.shape[1:3]
    top, bottom, down = neighbours(rows, grads.shape[1], align_corners, half_pixel_centers)
    left, right, along = neighbours(columns, grads.shape[2], align_corners, half_pixel_centers)
    result = np.zeros((grads.shape[0], rows, columns, grads.shape[3]), dtype=np.float64)
    for row, by_row in ((top, 1 - down), (bottom, down)):
        for column, by_column in ((left, 1 - along), (right, along)):
            share = by_row.reshape(1, -1, 1, 1) * by_column.reshape(1, 1, -1, 1)
            where: Any = (slice(None), row[:, None], column[None, :])
            np.add.at(result, where, grads * share)
    return result.astype(original_image.dtype)


def nearest_places(length: int, count: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """Which of ``length`` pixels each of ``count`` takes, int64 [count]."""
    places = np.arange(count, dtype=FLOAT)
    if half_pixel_centers:
        places = places + FLOAT(0.5)
    places = places * scale_of(length, count, align_corners)
    whole = np.floor(places + FLOAT(0.5)) if align_corners else np.floor(places)
    result: Array = np.clip(whole.astype(np.int64), 0, length - 1)
    return result


@kernel("ResizeNearestNeighbor")
def resize_nearest_neighbor(
    images: Array, size: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    """The type of the images is kept."""
    wanted = _target(images, size, align_corners, half_pixel_centers)
    picked = [
        nearest_places(length, count, align_corners, half_pixel_centers)
        for length, count in zip(images.shape[1:3], wanted, strict=True)
    ]
    return np.ascontiguousarray(images[:, picked[0]][:, :, picked[1]])


@kernel("ResizeNearestNeighborGrad")
def resize_nearest_neighbor_grad(
    grads: Array, size: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    rows, columns = ints(size)
    if min(rows, columns) < 1:
        raise ValueError(f"the size must be positive, not {[rows, columns]}")
    if not grads.size:
        return np.zeros(reserve((grads.shape[0], rows, columns, grads.shape[3]), grads.dtype), grads.dtype)
    down, along = (
        nearest_places(length, count, align_corners, half_pixel_centers)
        for length, count in zip((rows, columns), grads.shape[1:3], strict=True)
    )
    seen = down[:, None] * columns + along
    kind = grads.dtype if grads.dtype.kind in "iu" else np.float64  # integers wrap around as in TensorFlow
    flat = np.zeros(reserve((grads.shape[0], rows * columns, grads.shape[3]), np.float64), dtype=kind)
    where: Any = (slice(None), seen.ravel())
    np.add.at(flat, where, grads.reshape(grads.shape[0], -1, grads.shape[3]))
    return flat.reshape(grads.shape[0], rows, columns, -1).astype(grads.dtype)


def cubic_table(half_pixel_centers: bool) -> Array:
    """[steps, 4]: what the pixels from the one before weigh at each step of CUBIC_STEPS, by Keys' cubic."""
    a = -0.5 if half_pixel_centers else -0.75
    near = np.arange(CUBIC_STEPS + 1, dtype=np.float64) / CUBIC_STEPS
    far = near + 1
    inner = ((a + 2) * near - (a + 3)) * near * near + 1
    outer = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
    return np.stack([outer, inner, inner[::-1], outer[::-1]], axis=-1).astype(FLOAT)


def cubic_weights(size: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> tuple[Array, Array]:
    """(indices, weights), four a place. With half pixel centers, what lies outside weighs nothing."""
    places = positions(size, wanted, align_corners, half_pixel_centers)
    floor = np.floor(places)
    weights = cubic_table(half_pixel_centers)[np.rint((places - floor) * FLOAT(CUBIC_STEPS)).astype(np.int64)]
    raw = floor.astype(np.int64)[:, None] + np.arange(-1, 3)
    indices = np.clip(raw, 0, size - 1)
    if half_pixel_centers:
        weights = np.where(indices == raw, weights, FLOAT(0))
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return indices, weights.astype(FLOAT)


@kernel("ResizeBicubic")
def resize_bicubic(
    images: Array, size: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    rows, columns = _target(images, size, align_corners, half_pixel_centers)
    x = images.astype(FLOAT)
    if (rows, columns) == x.shape[1:3] and np.isfinite(x).all():  # else what counts 0 times counts
        return x
    down, by_row = cubic_weights(x.shape[1], rows, align_corners, half_pixel_centers)
    along, by_column = cubic_weights(x.shape[2], columns, align_corners, half_pixel_centers)
    tall = sum(x[:, down[:, k]] * by_row[:, k].reshape(1, -1, 1, 1) for k in range(4))
    assert isinstance(tall, np.ndarray)
    wide = sum(tall[:, :, along[:, k]] * by_column[:, k].reshape(1, 1, -1, 1) for k in range(4))
    return np.asarray(wide, dtype=FLOAT)


@lru_cache(maxsize=16)
def area_weights(size: int, wanted: int, align_corners: bool) -> Array:
    """For each output pixel the share of each input pixel that it covers; rows sum to 1 within the image."""
    scale = scale_of(size, wanted, align_corners and size > 1)
    starts = (np.arange(wanted, dtype=FLOAT) * scale).astype(np.float64)
    ends = (np.arange(1, wanted + 1, dtype=FLOAT) * scale).astype(np.float64)
    weights = np.zeros(reserve((wanted, size), np.float64))
    first, rows = np.floor(starts).astype(np.int64), np.arange(wanted)
    for step in range(int((np.ceil(ends) - first).max(initial=0))):
        pixels = first + step
        covered = np.minimum(pixels + 1, ends) - np.maximum(pixels, starts)
        np.add.at(weights, (rows, np.clip(pixels, 0, size - 1)), np.maximum(covered, 0))
    weights /= float(scale)
    weights.flags.writeable = False
    return weights


@kernel("ResizeArea")
def resize_area(images: Array, size: Array, *, align_corners: bool = False) -> Array:
    """Each output pixel is the mean of the input area under it."""
    rows, columns = _target(images, size, align_corners, False)
    down = area_weights(images.shape[1], rows, align_corners)
    along = area_weights(images.shape[2], columns, align_corners)
    x = widened(images).astype(np.float64)

    def means(values: Array) -> Array:
        count, height, width, channels = values.shape
        if rows < height:
            tall = np.matmul(down, values.reshape(count, height, width * channels))
            return np.asarray(np.matmul(along, tall.reshape(count, rows, width, channels)))
        wide = np.matmul(along, values)
        tall = np.matmul(down, wide.reshape(count, height, columns * channels))
        return np.asarray(tall).reshape(count, rows, columns, channels)

    whole = np.isfinite(x)
    found = means(np.where(whole, x, 0))
    if not whole.all():  # which must not reach the pixels that do not touch them, as 0 times infinity would
        high, low, none = (means((test).astype(np.float64)) > 0 for test in (x == np.inf, x == -np.inf, np.isnan(x)))
        found = np.where(high, np.inf, np.where(low, -np.inf, found))
        found = np.where(none | (high & low), np.nan, found)
    return found.astype(FLOAT)
