"""From int32 codes back to 8 bits: the range that is really used, and codes moved from one range to another."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import QINT8, QUINT8
from pocketgraph.kernels.arrays import Array, number, reserve
from pocketgraph.kernels.image.resizing import neighbours, resize_bilinear
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32, codes_of, moved, requantized, used_range
from pocketgraph.kernels.quantized.range_checks import ends
from pocketgraph.kernels.registry import kernel


@kernel("RequantizationRange")
def requantization_range(input: Array, input_min: Array, input_max: Array) -> tuple[Array, Array]:
    low, high = used_range(input, *ends(input_min, input_max))
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
    low, high = ends(requested_output_min, requested_output_max)
    old = ends(input_min, input_max)
    if low > 0:
        raise RunError(f"requested_output_min must be <= 0, but got {low:g}")
    if high < low:
        raise RunError(f"requested_output_max must be >= requested_output_min, but got {high:g} and {low:g}")
    if out_type == QINT8:  # which goes through floats
        kinds = codes_of(np.dtype(np.int32)), codes_of(np.dtype(np.int8))
        codes = moved(input, old, kinds[0], (low, high), kinds[1]).astype(np.int8)
    else:
        codes = requantized(input, *old, low, high)
    return codes, np.array(number(requested_output_min), F32), np.array(number(requested_output_max), F32)


@kernel("QuantizeDownAndShrinkRange")
def quantize_down_and_shrink_range(input: Array, input_min: Array, input_max: Array) -> tuple[Array, Array, Array]:
    given = ends(input_min, input_max)
    low, high = used_range(input, *given)
    codes = requantized(input, *given, low, high)
    return codes, np.array(low, F32), np.array(high, F32)


def _channel_sizes(input: Array, input_min: Array, input_max: Array) -> Array:
    """The larger end of each channel's range, as float32."""
    sizes = np.maximum(np.abs(input_min), np.abs(input_max)).astype(F32)
    if input.ndim != 4 or sizes.shape != input.shape[-1:]:
        raise RunError(f"one range for each channel of 4 dimensions, not {list(sizes.shape)} for {list(input.shape)}")
    if not np.isfinite(sizes).all():
        raise RunError("the range of a channel is none: both ends must be finite numbers")
    return sizes


@kernel("RequantizationRangePerChannel")
def requantization_range_per_channel(
    input: Array, input_min: Array, input_max: Array, *, clip_value_max: float
) -> tuple[Array, Array]:
    """The range of all channels' values, symmetrical unless none is negative, each side at most ``clip_value_max``."""
    if not input.size:
        raise RunError("an empty tensor has no range")
    level = _channel_sizes(input, input_min, input_max) / F32(1 << 31)
    lows, highs = (getattr(input, end)(axis=(0, 1, 2)).astype(F32) * level for end in ("min", "max"))
    high = np.minimum(np.maximum(np.abs(lows), np.abs(highs)).max(), F32(clip_value_max))
    return np.asarray(-high if (lows < 0).any() else F32(0), F32), np.asarray(high, F32)


@kernel("RequantizePerChannel")
def requantize_per_channel(
    input: Array,
    input_min: Array,
    input_max: Array,
    requested_output_min: Array,
    requested_output_max: Array,
    *,
    out_type: DType = QUINT8,
) -> tuple[Array, Array, Array]:
    """int32 codes of a range for each channel as codes of one range about zero, halves rounded to even."""
    if out_type not in (QINT8, QUINT8):
        raise RunError(f"out_type must be qint8 or quint8, but got: {out_type.name}")
    low, high = (F32(end) for end in ends(requested_output_min, requested_output_max))
    wanted, largest = max(abs(low), abs(high)), F32(127 if out_type is QINT8 else 255)
    scales = largest * (_channel_sizes(input, input_min, input_max) / wanted / F32(1 << 31))
    codes = np.rint(input.astype(F32) * scales.astype(F32))
    limits = (-128, 127) if out_type is QINT8 else (0, 255)
    return np.clip(np.nan_to_num(codes), *limits).astype(out_type.numpy), np.array(low), np.array(high)


LERP_BITS = {"uint8": 7, "int32": 30}
"""The binary digits of an interpolation weight, by the codes' type."""


def _truncated_shift(values: Array, bits: int) -> Array:
    return np.asarray(np.sign(values) * (np.abs(values) >> bits))


@kernel("QuantizedResizeBilinear")
def quantized_resize_bilinear(
    images: Array, size: Array, min: Array, max: Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> tuple[Array, Array, Array]:
    """Bilinear on codes, with whole-number weights; int32 codes are rounded to float32 first."""
    if images.ndim != 4 or size.shape != (2,) or int(size.min()) <= 0:
        raise ValueError(f"images {list(images.shape)} cannot be resized to {size.tolist()}")
    bits = LERP_BITS.get(images.dtype.name)
    if bits is None:
        resized = resize_bilinear(images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers)
        return resized.astype(images.dtype), min, max
    rows, columns = (int(s) for s in size)
    if (rows, columns) == images.shape[1:3]:
        return images, min, max
    reserve((images.shape[0], rows, columns, images.shape[3]), np.int64)
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
