"""Between floats and codes: QuantizeV2, Dequantize and the FakeQuant ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.arrays import Array, number, widened
from pocketgraph.kernels.registry import kernel

F32 = np.float32
LARGEST_FLOAT = float(np.finfo(F32).max)


@dataclass(frozen=True)
class Codes:
    """The codes of a quantized type.

    Attributes:
        dtype: the NumPy type that holds them.
        low: the smallest.
        high: the largest.
    """

    dtype: np.dtype[Any]
    low: int
    high: int

    @property
    def steps(self) -> int:
        """How many codes there are."""
        return self.high - self.low + 1

    @property
    def signed(self) -> bool:
        return self.low < 0

    @property
    def half(self) -> float:
        """What MIN_COMBINED adds to a code to make it count from 0."""
        return self.steps / 2 if self.signed else 0.0


def codes_of(dtype: np.dtype[Any]) -> Codes:
    limits = np.iinfo(dtype)
    return Codes(dtype, int(limits.min), int(limits.max))


def half_away(x: Any) -> Any:
    """Rounded to the nearest integer, halves away from zero."""
    return np.trunc(x) + np.trunc((x - np.trunc(x)) * 2)


def to_code(value: float, low: float, high: float, codes: Codes) -> int:
    """The code of one number in the range low…high, not clamped, by the double precision formula."""
    if low == high:
        return codes.low
    span = (high - low) * (codes.steps / (codes.steps - 1.0))
    scale = codes.steps / span
    return int(half_away(value * scale) - half_away(low * scale)) + codes.low


def from_code(code: int, low: float, high: float, codes: Codes) -> Any:
    """The float32 that one code stands for in the range low…high, by the double precision formula."""
    if low == high:
        return F32(low)
    scale = (high - low) * (codes.steps / (codes.steps - 1.0)) / codes.steps
    step = float(F32(scale))
    start = float(half_away(F32(F32(low) / F32(step)))) * step
    return F32(start + (code - codes.low) * scale)


def quantized_first(x: Array, low: float, high: float, codes: Codes) -> Array:
    """The codes of an array in the range low…high, by the float32 formula of the MIN_FIRST mode."""
    scale = F32(0) if low == high else F32((codes.steps - 1.0) / float(F32(high) - F32(low)))
    start = F32(half_away(F32(low) * scale)) - F32(codes.low)
    with np.errstate(all="ignore"):
        values = half_away(x.astype(F32) * scale) - start
    top = F32(2147483520.0) if codes.high > 1 << 24 else F32(codes.high)
    values = np.minimum(np.maximum(values, F32(codes.low)), top)
    return np.asarray(np.nan_to_num(values).astype(np.int64).astype(codes.dtype))


def dequantized_first(q: Array, low: float, high: float, codes: Codes) -> Array:
    """The float32 values of codes in the range low…high, by the formula of the MIN_FIRST mode."""
    scale = F32(float(F32(high) - F32(low)) / (codes.steps - 1.0))
    start = F32(low) if low == high else F32(half_away(F32(low) / scale)) * scale
    offset = F32(start - F32(codes.low) * scale)
    return np.asarray(q.astype(F32) * scale + offset)


def _modes(mode: str, round_mode: str) -> None:
    if mode not in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        raise RunError(f"Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '{mode}'")
    if round_mode not in ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"):
        raise RunError(f"Round mode string must be 'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN', is '{round_mode}'")
    if round_mode == "HALF_TO_EVEN" and mode != "SCALED":
        raise RunError(f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'")


def _quantize(
    x: Array, low: float, high: float, codes: Codes, mode: str, round_mode: str, narrow: bool, least: float
) -> tuple[Array, float, float]:
    """(codes, low, high) for one range; the range is widened to hold zero and to have some width."""
    if high < low:
        raise RunError("input_max_range must be larger than input_min_range.")
    bottom = min(0.0, low)
    gap = float(F32(max(1.0, abs(low), abs(high))) * F32(least))
    top = max(0.0, high, float(F32(bottom) + F32(gap)))
    wide = x.astype(F32)
    if mode == "MIN_FIRST":
        return quantized_first(wide, bottom, top, codes), bottom, top
    if mode == "SCALED":
        smallest, largest = F32(codes.low + (1 if narrow else 0)), F32(codes.high)
        by_low = smallest / F32(bottom) if smallest * F32(bottom) > 0 else F32(LARGEST_FLOAT)
        by_high = largest / F32(top) if largest * F32(top) > 0 else F32(LARGEST_FLOAT)
        scale = min(by_low, by_high)
        bottom, top = float(smallest / scale), float(largest / scale)
        inside = np.minimum(np.maximum(wide, F32(bottom)), F32(top)) * scale
        whole = np.rint(inside) if round_mode == "HALF_TO_EVEN" else half_away(inside)
    else:
        scale = F32((codes.high - codes.low) / (float(F32(top)) - float(F32(bottom))))
        inside = (np.minimum(np.maximum(wide, F32(bottom)), F32(top)) - F32(bottom)) * scale
        if codes.signed:
            whole = half_away(inside - F32(codes.half))
        else:
            whole = np.trunc(inside + F32(0.5))
    limited = np.clip(np.nan_to_num(whole).astype(np.float64), codes.low, codes.high)
    return limited.astype(codes.dtype), bottom, top


def _scalar(value: float) -> Array:
    return np.array(value, dtype=F32)


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
    _modes(mode, round_mode)
    codes = codes_of(T.numpy)
    options = (codes, mode, round_mode, narrow_range, ensure_minimum_range)
    if axis == -1:
        found, low, high = _quantize(input, number(min_range), number(max_range), *options)
        return found, _scalar(low), _scalar(high)
    if axis < -1 or axis >= input.ndim or min_range.shape != (input.shape[axis],) or max_range.shape != min_range.shape:
        raise RunError(f"ranges of shape {list(min_range.shape)} for axis {axis} of {list(input.shape)}")
    result = np.empty(input.shape, dtype=codes.dtype)
    lows, highs = np.empty(min_range.shape, F32), np.empty(max_range.shape, F32)
    for i in range(input.shape[axis]):
        where: Any = (*[slice(None)] * axis, i)
        result[where], lows[i], highs[i] = _quantize(input[where], float(min_range[i]), float(max_range[i]), *options)
    return result, lows, highs


def dequantized(q: Array, low: float, high: float, mode: str, narrow_range: bool = False) -> Array:
    """The float32 values of codes in the range low…high."""
    codes = codes_of(q.dtype)
    if mode == "MIN_FIRST":
        return dequantized_first(q, low, high, codes)
    if mode == "SCALED":
        smallest = codes.low + (1 if narrow_range else 0)
        largest = F32(high) / F32(codes.high)
        scale = largest if codes.low == 0 else max(F32(low) / F32(smallest), largest)
        return np.asarray(q.astype(F32) * scale)
    scale = F32((F32(high) - F32(low)) / F32(codes.high - codes.low))
    return np.asarray((q.astype(F32) + F32(codes.half)) * scale + F32(low))


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
    _modes(mode, "HALF_AWAY_FROM_ZERO")
    if axis == -1:
        values = dequantized(input, number(min_range), number(max_range), mode, narrow_range)
        return values.astype(dtype.numpy, copy=False)
    if axis < -1 or axis >= input.ndim or min_range.shape != (input.shape[axis],) or max_range.shape != min_range.shape:
        raise RunError(f"ranges of shape {list(min_range.shape)} for axis {axis} of {list(input.shape)}")
    result = np.empty(input.shape, dtype=F32)
    for i in range(input.shape[axis]):
        where: Any = (*[slice(None)] * axis, i)
        result[where] = dequantized(input[where], float(min_range[i]), float(max_range[i]), mode, narrow_range)
    return result.astype(dtype.numpy, copy=False)


def nudged(low: Array, high: Array, num_bits: int, narrow_range: bool) -> tuple[Array, Array, Array]:
    """(low, high, scale) moved so that zero is exactly a step, in float32, element by element."""
    if not 2 <= num_bits <= 16:
        raise RunError(f"num_bits must be between 2 and 16, inclusive, not {num_bits}")
    smallest, largest = F32(1 if narrow_range else 0), F32((1 << num_bits) - 1)
    with np.errstate(all="ignore"):
        scale = (high - low) / (largest - smallest)
        zero = smallest - low / scale
        point = np.where(zero < smallest, smallest, np.where(zero > largest, largest, half_away(zero)))
        return np.asarray((smallest - point) * scale), np.asarray((largest - point) * scale), np.asarray(scale)


@kernel("FakeQuantWithMinMaxArgs")
def fake_quant_with_min_max_args(
    inputs: Array, *, min: float = -6.0, max: float = 6.0, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    """``inputs`` rounded to the steps that codes of ``num_bits`` would have between min and max."""
    if not min < max:
        raise RunError(f"min has to be smaller than max, was: {min} >= {max}")
    low, high, scale = nudged(np.array(min, F32), np.array(max, F32), num_bits, narrow_range)
    steps = F32((1 << num_bits) - 1 - int(narrow_range))
    inverse = steps / (F32(max) - F32(min))  # not 1 / scale: ties depend on it
    inside = np.minimum(np.maximum(inputs, low), high) - low
    zero = np.floor(-low * inverse + F32(0.5))
    return np.asarray(np.floor(inside * inverse - zero + F32(0.5)) * scale).astype(F32)


def _fake_quant(inputs: Array, low: Array, high: Array, num_bits: int, narrow_range: bool) -> Array:
    low, high = low.astype(F32), high.astype(F32)
    bottom, top, scale = nudged(low, high, num_bits, narrow_range)
    with np.errstate(all="ignore"):
        inside = np.minimum(np.maximum(inputs, bottom), top) - bottom
        zero = np.floor(-bottom / scale + F32(0.5))
        values = np.floor(inside / scale - zero + F32(0.5)) * scale
    return np.asarray(np.where((low == 0) & (high == 0), F32(0), values)).astype(F32)


@kernel("FakeQuantWithMinMaxVars")
def fake_quant_with_min_max_vars(
    inputs: Array, min: Array, max: Array, *, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    return _fake_quant(inputs, min.reshape(()), max.reshape(()), num_bits, narrow_range)


@kernel("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_with_min_max_vars_per_channel(
    inputs: Array, min: Array, max: Array, *, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    """One range for each entry of the last axis."""
    if min.shape != inputs.shape[-1:] or max.shape != min.shape:
        raise RunError(f"shapes that do not fit: inputs {list(inputs.shape)}, min {list(min.shape)}")
    return _fake_quant(inputs, min, max, num_bits, narrow_range)


@kernel("QuantizeAndDequantizeV2")
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
    """``input`` rounded to steps symmetrical round zero, as many as ``num_bits`` codes give."""
    x = widened(input)
    others = tuple(a for a in range(x.ndim) if a != axis) if axis >= 0 else tuple(range(x.ndim))
    shape = [-1 if a == axis else 1 for a in range(x.ndim)] if axis >= 0 else [1] * x.ndim
    low = input_min.reshape(shape) if range_given else x.min(axis=others, keepdims=True, initial=np.inf)
    high = input_max.reshape(shape) if range_given else x.max(axis=others, keepdims=True, initial=-np.inf)
    low, high = low.astype(x.dtype), high.astype(x.dtype)
    smallest = (-(1 << (num_bits - 1)) + int(narrow_range)) if signed_input else 0
    largest = (1 << (num_bits - 1)) - 1 if signed_input else (1 << num_bits) - 1
    with np.errstate(all="ignore"):
        by_low = np.where(smallest * low > 0, x.dtype.type(smallest) / low, np.finfo(x.dtype).max)
        by_high = np.where(largest * high > 0, x.dtype.type(largest) / high, np.finfo(x.dtype).max)
        scale = np.minimum(by_low, by_high).astype(x.dtype)
        if range_given:
            x = np.clip(x, smallest / scale, largest / scale)
        steps = np.rint(x * scale) if round_mode == "HALF_TO_EVEN" else np.floor(x * scale + x.dtype.type(0.5))
        return np.asarray(steps / scale).astype(input.dtype)


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
    return quantize_and_dequantize_v2(
        input,
        input_min,
        input_max,
        signed_input=signed_input,
        num_bits=int(number(num_bits)),
        range_given=range_given,
        narrow_range=narrow_range,
        axis=axis,
    )
