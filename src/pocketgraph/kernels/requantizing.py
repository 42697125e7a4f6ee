"""From int32 codes back to 8 bits: the range that is really used, and codes moved from one range to another."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import QUINT8
from pocketgraph.kernels.arrays import Array, number
from pocketgraph.kernels.eight_bit import F32, requantized, used_range
from pocketgraph.kernels.image_resizing import neighbours, resize_bilinear
from pocketgraph.kernels.registry import kernel


@kernel("RequantizationRange")
def requantization_range(input: Array, input_min: Array, input_max: Array) -> tuple[Array, Array]:
    low, high = used_range(input, number(input_min), number(input_max))
    return np.array(low, F32), np.array(high, F32)


@kernel("Requantize")
def requantize(
    input: Array,
    input_min: Array,
    input_max: Array,
    requested_output_min: Array,
    requested_output_max: Array,
    *,
    out_type: DType = QUINT8,
) -> tuple[Array, Array, Array]:
    low, high = number(requested_output_min), number(requested_output_max)
    if low > 0:
        raise RunError(f"requested_output_min must be <= 0, but got {low:g}")
    if high < low:
        raise RunError(f"requested_output_max must be >= requested_output_min, but got {high:g} and {low:g}")
    codes = requantized(input, number(input_min), number(input_max), low, high)
    return codes, np.array(low, F32), np.array(high, F32)


@kernel("QuantizeDownAndShrinkRange")
def quantize_down_and_shrink_range(
    input: Array, input_min: Array, input_max: Array, *, out_type: DType = QUINT8
) -> tuple[Array, Array, Array]:
    low, high = used_range(input, number(input_min), number(input_max))
    codes = requantized(input, number(input_min), number(input_max), low, high)
    return codes, np.array(low, F32), np.array(high, F32)


LERP_BITS = {"uint8": 7, "int32": 30}
"""The binary digits of an interpolation weight, by the codes' type."""


def _truncated_shift(values: Array, bits: int) -> Array:
    return np.asarray(np.sign(values) * (np.abs(values) >> bits))


@kernel("QuantizedResizeBilinear")
def quantized_resize_bilinear(
    images: Array, size: Array, min: Array, max: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> tuple[Array, Array, Array]:
    """Bilinear on codes, with whole-number weights; int32 codes are rounded to float32 first."""
    bits = LERP_BITS.get(images.dtype.name)
    if bits is None:
        resized = resize_bilinear(images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers)
        return resized.astype(images.dtype), min, max
    rows, columns = (int(s) for s in size)
    if (rows, columns) == images.shape[1:3]:
        return images, min, max
    top, bottom, down = neighbours(images.shape[1], rows, align_corners, half_pixel_centers)
    left, right, along = neighbours(images.shape[2], columns, align_corners, half_pixel_centers)
    one = 1 << bits
    by_row = (down * F32(one)).astype(np.int64).reshape(1, -1, 1, 1)
    by_column = (along * F32(one)).astype(np.int64).reshape(1, 1, -1, 1)
    x = images.astype(F32).astype(np.int64)
    upper, lower = x[:, top], x[:, bottom]
    first = upper[:, :, left] * one + (upper[:, :, right] - upper[:, :, left]) * by_column
    second = lower[:, :, left] * one + (lower[:, :, right] - lower[:, :, left]) * by_column
    values = first + _truncated_shift(second - first, bits) * by_row
    found = _truncated_shift(values + one // 2, bits)
    return found.astype(images.dtype), min, max
