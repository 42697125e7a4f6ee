"""Between floats and codes: QuantizeV2, Dequantize, and the ops that do both at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import BFLOAT16, FLOAT
from pocketgraph.kernels.arrays import Array, number, widened
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32, check_modes, codes_of, dequantized, quantized
from pocketgraph.kernels.registry import kernel


def _scalar(value: float) -> Array:
    return np.array(value, dtype=F32)


def _checked_slices(shape: tuple[int, ...], low: Array, high: Array, axis: int, mode: str) -> None:
    """Refuses ranges that are not one for each slice along ``axis``, and the mode that takes no more than one."""
    if axis < -1 or axis >= len(shape) or low.shape != (shape[axis],) or high.shape != low.shape:
        raise RunError(f"ranges of shape {list(low.shape)} and {list(high.shape)} for axis {axis} of {list(shape)}")
    if mode == "MIN_FIRST" and shape[axis] != 1:
        raise RunError(f"MIN_FIRST mode is not implemented for several ranges, along axis {axis}")


@kernel("QuantizeV2")
def quantize_v2(
    input: Array,
    min_range: Array,
    max_range: Array,
    *,
    T: DType,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    axis: int = -1,
    ensure_minimum_range: float = 0.01,
) -> tuple[Array, Array, Array]:
    """(codes, the range used: low, high); with ``axis``, one range for each slice along it."""
    check_modes(mode, round_mode)
    codes = codes_of(T.numpy)
    options = (codes, mode, round_mode, narrow_range, ensure_minimum_range)
    if axis == -1:
        found, low, high = quantized(input, number(min_range), number(max_range), *options)
        return found, _scalar(low), _scalar(high)
    _checked_slices(input.shape, min_range, max_range, axis, mode)
    result = np.empty(input.shape, dtype=codes.dtype)
    lows, highs = np.empty(min_range.shape, F32), np.empty(max_range.shape, F32)
    for i in range(input.shape[axis]):
        where: Any = (*[slice(None)] * axis, i)
        result[where], lows[i], highs[i] = quantized(input[where], float(min_range[i]), float(max_range[i]), *options)
    shape = () if input.shape[axis] == 1 else lows.shape  # as TensorFlow has it
    return result, lows.reshape(shape), highs.reshape(shape)


@kernel("Dequantize")
def dequantize(
    input: Array,
    min_range: Array,
    max_range: Array,
    *,
    mode: str = "MIN_COMBINED",
    narrow_range: bool = False,
    axis: int = -1,
    dtype: DType = FLOAT,
) -> Array:
    check_modes(mode, "HALF_AWAY_FROM_ZERO")
    if dtype is BFLOAT16 and mode != "MIN_COMBINED":
        raise ValueError(f"mode must be MIN_COMBINED where the result is bfloat16, not {mode}")
    low, high = min_range.ravel(), max_range.ravel()  # of one slice TensorFlow takes scalars, too
    if axis == -1:
        if min_range.size != 1 or max_range.size != 1:
            raise ValueError(f"one range is wanted, not {min_range.size} and {max_range.size} ends")
        values = dequantized(input, number(min_range), number(max_range), mode, narrow_range)
        return values.astype(dtype.numpy, copy=False)
    _checked_slices(input.shape, low, high, axis, mode)
    result = np.empty(input.shape, dtype=F32)
    for i in range(input.shape[axis]):
        where: Any = (*[slice(None)] * axis, i)
        result[where] = dequantized(input[where], float(low[i]), float(high[i]), mode, narrow_range)
    return result.astype(dtype.numpy, copy=False)


def _both_ways(
    x: Array, low: Any, high: Any, bits: int, signed: bool, given: bool, round_mode: str, narrow: bool, axis: int
) -> Array:
    """``x`` rounded to the steps that codes of ``bits`` would have, zero being one of them."""
    if not 1 < bits < 64:
        raise RunError(f"num_bits is out of range: {bits}")
    if axis < -1 or axis >= x.ndim:
        raise RunError(f"axis {axis} of a tensor of shape {list(x.shape)}")
    if not x.size:
        return x
    others = tuple(a for a in range(x.ndim) if a != axis)
    across = [-1 if a == axis else 1 for a in range(x.ndim)]
    if given:
        limits = [np.asarray(v).reshape(across if axis >= 0 else [1] * x.ndim).astype(x.dtype) for v in (low, high)]
        if not (limits[0] <= limits[1]).all():
            raise RunError("Invalid range: input_min > input_max")
    else:
        limits = [getattr(x, name)(axis=others, keepdims=True) for name in ("min", "max")]
    kind = x.dtype.type
    smallest = kind(-(1 << (bits - 1)) + int(narrow) if signed else 0)
    largest = kind((1 << (bits - 1)) - 1 if signed else (1 << bits) - 1)
    bottom, top = limits
    huge = np.finfo(x.dtype).max
    by_low = np.where(smallest * bottom > 0, smallest / bottom, huge).astype(x.dtype)
    by_high = np.where(largest * top > 0, largest / top, huge).astype(x.dtype)
    from_low = by_low < by_high  # the end that decides keeps its value, the other follows
    scale = np.where(from_low, by_low, by_high)
    step = np.where(from_low, bottom / smallest, top / largest).astype(x.dtype)
    if given:
        x = np.maximum(
            np.minimum(x, np.where(from_low, largest * step, top)), np.where(from_low, bottom, smallest * step)
        )
    steps = np.rint(x * scale) if round_mode == "HALF_TO_EVEN" else np.floor(x * scale + kind(0.5))
    return np.asarray(steps * step).astype(x.dtype)


@kernel("QuantizeAndDequantize")
def quantize_and_dequantize(
    input: Array,
    *,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    input_min: float = 0.0,
    input_max: float = 0.0,
) -> Array:
    """The oldest form, with a range of attributes."""
    found = _both_ways(
        widened(input), input_min, input_max, num_bits, signed_input, range_given, "HALF_TO_EVEN", False, -1
    )
    return found.astype(input.dtype)


@kernel("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def quantize_and_dequantize_v2(
    input: Array,
    input_min: Array,
    input_max: Array,
    *,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    narrow_range: bool = False,
    axis: int = -1,
) -> Array:
    """``input`` rounded to the steps of ``num_bits`` codes; with ``axis``, one range for each slice along it."""
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise RunError(f"Round mode string must be 'HALF_TO_EVEN' or 'HALF_UP', is '{round_mode}'")
    options = (num_bits, signed_input, range_given, round_mode, narrow_range, axis)
    return _both_ways(widened(input), input_min, input_max, *options).astype(input.dtype)


@kernel("QuantizeAndDequantizeV3")
def quantize_and_dequantize_v3(
    input: Array,
    input_min: Array,
    input_max: Array,
    num_bits: Array,
    *,
    signed_input: bool = True,
    range_given: bool = True,
    narrow_range: bool = False,
    axis: int = -1,
) -> Array:
    options = (int(number(num_bits)), signed_input, range_given, "HALF_TO_EVEN", narrow_range, axis)
    return _both_ways(widened(input), input_min, input_max, *options).astype(input.dtype)


@kernel("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_v4_grad(
    gradients: Array, input: Array, input_min: Array, input_max: Array, *, axis: int = -1
) -> tuple[Array, Array, Array]:
    """(gradient of the input, of the range's ends): what lies in the range passes, the ends have none.

    Raises:
        RunError: the gradients' shape is another, or there are not as many ranges as slices along ``axis``.
    """
    if gradients.shape != input.shape:
        raise RunError(f"gradient and input tensor sizes should match: {list(gradients.shape)} and {list(input.shape)}")
    low, high = input_min, input_max
    if axis >= 0:
        if axis >= input.ndim or low.shape != (input.shape[axis],) or high.shape != low.shape:
            raise RunError(f"ranges of {list(low.shape)} and {list(high.shape)} for axis {axis} of {list(input.shape)}")
        low, high = (end.reshape(-1, *[1] * (input.ndim - axis - 1)) for end in (low, high))
    elif axis < -1 or low.ndim or high.ndim:
        raise RunError(f"one range is wanted, not {list(low.shape)} and {list(high.shape)}")
    inside = (input >= low) & (input <= high)
    # what is not finite stays so outside of the range too
    passed = np.asarray(gradients * inside.astype(gradients.dtype))
    return passed, np.zeros_like(input_min), np.zeros_like(input_max)
