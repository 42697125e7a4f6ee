"""TensorFlow 2's uniformly quantized tensors: codes with a scale and a code of zero, for all or for each slice.

A code stands for ``(code - zero point) * scale``. Sums of products are of 32 bits; they are moved to other scales in
fixed point, by a factor of 31 binary digits.

Source: tensorflow/core/kernels/uniform_quant_ops; recorded results of TensorFlow 2.21 hold this file
(tests/kernels/quantized/test_fused_layers.py).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import QINT8, QINT32
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32, WIDE, cast, half_away
from pocketgraph.kernels.registry import kernel

MOST_BITS = 31
"""Binary digits of a factor in fixed point."""
LARGEST_SHIFT = 30
ITEMS = range(-128, 128)
"""The codes that what comes in as float32 is rounded to."""


class Scale(NamedTuple):
    """Scales, float32, and codes of zero, int32, shaped to go with a tensor."""

    scales: Array
    zeros: Array


def scale_along(shape: tuple[int, ...], scales: Array, zeros: Array, axis: int) -> Scale:
    """The scale of a tensor of ``shape``.

    Args:
        shape: of the tensor.
        scales: float32 [] or, with an axis, one for each slice.
        zeros: int32, as many.
        axis: -1 for the whole tensor.

    Raises:
        RunError: there are not as many as slices, or a scale is not positive.
    """
    if axis < -1 or axis >= len(shape):
        raise RunError(f"quantization_axis must be -1 or an axis of {list(shape)}, not {axis}")
    wanted = () if axis == -1 else (shape[axis],)
    if scales.shape != wanted or zeros.shape != wanted:
        raise RunError(f"scales and zero points must have the shape {list(wanted)}, not {list(scales.shape)}")
    if not (scales > 0).all():
        raise RunError("scales must be all positive")
    across = [1] * len(shape)
    if axis >= 0:
        across[axis] = -1
    return Scale(scales.astype(F32).reshape(across), zeros.astype(np.int64).reshape(across))


def fixed_point(factors: Array) -> tuple[Array, Array]:
    """Positive float64 factors as whole numbers of 31 binary digits and powers of two.

    Raises:
        RunError: one is not a positive finite number.
    """
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise RunError("the ratio of two scales must be a positive finite number")
    parts, shifts = np.frexp(factors)
    whole = half_away(parts * 2.0**MOST_BITS).astype(np.int64)
    shifts = np.where(whole == 1 << MOST_BITS, shifts + 1, shifts)
    whole = np.where(whole == 1 << MOST_BITS, whole // 2, whole)
    whole, shifts = np.where(shifts < -MOST_BITS, 0, whole), np.where(shifts < -MOST_BITS, 0, shifts)
    largest = shifts > LARGEST_SHIFT
    return np.where(largest, (1 << MOST_BITS) - 1, whole), np.where(largest, LARGEST_SHIFT, shifts).astype(np.int64)


def rescaled(values: Array, factors: Any) -> Array:
    """Whole numbers times factors, rounded with halves upward, as far as an int32 holds them; int64."""
    whole, shifts = fixed_point(np.asarray(factors, np.float64))
    by = MOST_BITS - shifts
    products = wrapped(values) * whole + (np.int64(1) << (by - 1))
    return np.asarray(np.clip(products >> by, WIDE.low, WIDE.high))


def wrapped(values: Array) -> Array:
    """What an int32 holds of whole numbers."""
    return np.asarray(values.astype(np.int64).astype(np.int32).astype(np.int64))


def limited(values: Array, low: int, high: int, dtype: np.dtype[Any]) -> Array:
    return np.maximum(np.minimum(wrapped(values), high), low).astype(dtype)


def dequantized(codes: Array, scale: Scale) -> Array:
    """What codes stand for, float32; codes of 32 bits are rounded to float32 first."""
    return np.asarray((codes.astype(F32) - scale.zeros.astype(F32)) * scale.scales, F32)


def quantized(values: Array, scales: Array) -> Array:
    """float32 values in steps of ``scales``, rounded with halves upward, int64."""
    return cast(np.floor(values * (F32(1) / scales) + F32(0.5)), WIDE).astype(np.int64)


@kernel("UniformQuantize")
def uniform_quantize(
    input: Array,
    scales: Array,
    zero_points: Array,
    *,
    Tout: DType,
    quantization_min_val: int,
    quantization_max_val: int,
    quantization_axis: int = -1,
) -> Array:
    """``floor(input / scale + 1/2) + zero point``, within the codes that there are."""
    scale = scale_along(input.shape, scales, zero_points, quantization_axis)
    levels = quantized(input, scale.scales)
    return limited(levels + scale.zeros, quantization_min_val, quantization_max_val, Tout.numpy)


@kernel("UniformDequantize")
def uniform_dequantize(input: Array, scales: Array, zero_points: Array, *, quantization_axis: int = -1) -> Array:
    scale = scale_along(input.shape, scales, zero_points, quantization_axis)
    return dequantized(input, scale)


@kernel("UniformRequantize")
def uniform_requantize(
    input: Array,
    input_scales: Array,
    input_zero_points: Array,
    output_scales: Array,
    output_zero_points: Array,
    *,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    Tout: DType = QINT8,
    input_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
) -> Array:
    axes = {input_quantization_axis, output_quantization_axis}
    if -1 not in axes and len(axes) > 1:
        raise RunError("input and output must be quantized along the same axis")
    before = scale_along(input.shape, input_scales, input_zero_points, input_quantization_axis)
    after = scale_along(input.shape, output_scales, output_zero_points, output_quantization_axis)
    moved = rescaled(input.astype(np.int64) - before.zeros, before.scales.astype(np.float64) / after.scales)
    return limited(moved + after.zeros, output_quantization_min_val, output_quantization_max_val, Tout.numpy)


@kernel("UniformQuantizedAdd")
def uniform_quantized_add(
    lhs: Array,
    rhs: Array,
    lhs_scales: Array,
    lhs_zero_points: Array,
    rhs_scales: Array,
    rhs_zero_points: Array,
    output_scales: Array,
    output_zero_points: Array,
    *,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    lhs_quantization_axis: int = -1,
    rhs_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
) -> Array:
    """Both operands moved to the result's scale, and added."""
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    after = scale_along(shape, output_scales, output_zero_points, output_quantization_axis)
    total = np.zeros(reserve(shape, np.int64), np.int64)
    for codes, scales, zeros, axis in (
        (lhs, lhs_scales, lhs_zero_points, lhs_quantization_axis),
        (rhs, rhs_scales, rhs_zero_points, rhs_quantization_axis),
    ):
        before = scale_along(codes.shape, scales, zeros, axis)
        if axis >= 0 and output_quantization_axis >= 0 and len(shape) - output_quantization_axis != codes.ndim - axis:
            raise RunError("operands and result must be quantized along the same axis")
        total += rescaled(codes.astype(np.int64) - before.zeros, before.scales.astype(np.float64) / after.scales)
    return limited(total + after.zeros, output_quantization_min_val, output_quantization_max_val, lhs.dtype)


@kernel("UniformQuantizedClipByValue")
def uniform_quantized_clip(
    operand: Array, min: Array, max: Array, scales: Array, zero_points: Array, *, quantization_axis: int = -1
) -> Array:
    """Codes between two others, which are of the same scale."""
    scale_along(operand.shape, scales, zero_points, quantization_axis)
    if min.shape != scales.shape or max.shape != scales.shape:
        raise RunError(f"min and max must have the shape of the scales, {list(scales.shape)}")
    across = [-1 if axis == quantization_axis else 1 for axis in range(operand.ndim)]
    low, high = (end.reshape(across) if quantization_axis >= 0 else end for end in (min, max))
    return np.asarray(np.minimum(np.maximum(operand, low), high), operand.dtype)


def found_scale(items: Array) -> tuple[Array, Scale]:
    """float32 items, each rounded to 256 codes between its least and its largest value and zero.

    Returns:
        The codes, int64, and the scale and the code of zero of each item.
    """
    flat = items.reshape(items.shape[0], math.prod(items.shape[1:])).astype(F32)
    lows = np.minimum(flat.min(axis=1, initial=0), 0).astype(np.float64)
    highs = np.maximum(flat.max(axis=1, initial=0), 0).astype(np.float64)
    first, last = float(ITEMS[0]), float(ITEMS[-1])
    scales = ((highs - lows) / (last - first)).astype(F32)
    inverse = np.where(highs == lows, 0.0, (last - first) / (highs - lows)).astype(F32)
    below, above = lows / scales, highs / scales
    zeros = np.where(abs(first) + np.abs(below) < abs(last) + np.abs(above), first - below, last - above)
    is_flat = (scales == 0) | ~np.isfinite(inverse)
    zeros = np.where(is_flat, 0, np.clip(half_away(np.nan_to_num(zeros)), first, last)).astype(np.int64)
    levels = cast(np.floor(flat * inverse[:, np.newaxis] + F32(0.5)), WIDE).astype(np.int64)
    codes = np.where(is_flat[:, np.newaxis], 0, np.clip(levels + zeros[:, np.newaxis], first, last).astype(np.int64))
    across = (items.shape[0], *[1] * (items.ndim - 1))
    scale = Scale(np.where(is_flat, F32(1), scales).reshape(across), zeros.reshape(across))
    return codes.reshape(items.shape), scale


def _matrices(lhs: Array, rhs: Array) -> None:
    if lhs.ndim != 2 or rhs.ndim != 2 or lhs.shape[1] != rhs.shape[0]:
        raise RunError(f"matrices that do not fit: {list(lhs.shape)} and {list(rhs.shape)}")


def _product(lhs: Array, rhs: Array) -> Array:
    """A product of whole numbers as int32 holds it; int64."""
    return wrapped(np.rint(lhs.astype(np.float64) @ rhs.astype(np.float64)))


@kernel("UniformQuantizedDot")
def uniform_quantized_dot(
    lhs: Array,
    rhs: Array,
    lhs_scales: Array,
    lhs_zero_points: Array,
    rhs_scales: Array,
    rhs_zero_points: Array,
    output_scales: Array,
    output_zero_points: Array,
    *,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    Tout: DType = QINT32,
    lhs_quantization_axis: int = -1,
    rhs_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
) -> Array:
    """The product of two matrices of codes."""
    _matrices(lhs, rhs)
    first = scale_along(lhs.shape, lhs_scales, lhs_zero_points, lhs_quantization_axis)
    second = scale_along(rhs.shape, rhs_scales, rhs_zero_points, rhs_quantization_axis)
    shape = (lhs.shape[0], rhs.shape[1])
    after = scale_along(shape, output_scales, output_zero_points, output_quantization_axis)
    sums = _product(lhs - first.zeros, rhs - second.zeros)
    factors = first.scales.astype(np.float64) * second.scales / after.scales
    found = rescaled(sums, factors) + after.zeros
    return limited(found, output_quantization_min_val, output_quantization_max_val, Tout.numpy)


@kernel("UniformQuantizedDotHybrid")
def uniform_quantized_dot_hybrid(
    lhs: Array, rhs: Array, rhs_scales: Array, rhs_zero_points: Array, *, rhs_quantization_axis: int = -1
) -> Array:
    """A matrix of float32, rounded row by row to codes of a range found in it, times one of codes."""
    _matrices(lhs, rhs)
    second = scale_along(rhs.shape, rhs_scales, rhs_zero_points, rhs_quantization_axis)
    codes, first = found_scale(lhs)
    sums = _product(codes - first.zeros, rhs - second.zeros)
    return np.asarray(sums.astype(F32) * first.scales * second.scales, F32)
