"""The arithmetic of codes: floats to codes and back, which range a result has, and codes moved from range to range.

Which intermediate number is float32, which double and which an integer decides single codes; the forms here are those
of TensorFlow's CPU kernels (tensorflow/core/kernels/quantization_utils.h and the quantized ops), to which recorded
results of TensorFlow 1.15 and 2.21 hold this file (tests/kernels/quantized). Ranges are Python floats that
hold float32 values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array

F32 = np.float32
Quantized = tuple[Array, Array, Array]
"""Codes, and the two ends of their range."""
LARGEST_FLOAT = float(np.finfo(F32).max)
SMALLEST_NORMAL = float(np.finfo(F32).tiny)
"""TensorFlow's processor flags take what is smaller for zero."""
LARGEST_WHOLE = F32(2147483520.0)
"""The largest float32 that is an int32."""
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
ROUND_MODES = ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN")


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
    """The codes that a NumPy integer type holds."""
    limits = np.iinfo(dtype)
    return Codes(dtype, int(limits.min), int(limits.max))


WIDE = codes_of(np.dtype(np.int32))
BYTE = codes_of(np.dtype(np.uint8))


def half_away(x: Any) -> Any:
    """Rounded to the nearest integer, halves away from zero."""
    return np.trunc(x) + np.trunc((x - np.trunc(x)) * 2)


def width(low: float, high: float) -> float:
    """``high - low`` as float32 gives it."""
    with np.errstate(all="ignore"):
        return float(F32(high) - F32(low))


def cast(values: Array, codes: Codes) -> Array:
    """Whole floats as codes, as a processor's conversion does it: what no int32 holds becomes the lowest int32."""
    with np.errstate(all="ignore"):
        outside = ~((values >= -2147483648.0) & (values < 2147483648.0))
        whole = np.where(outside, -2147483648.0, values).astype(np.int64)
    return np.asarray(whole.astype(codes.dtype))


def whole64(value: float, otherwise: int = -(2**63)) -> Any:
    """A float cut to an int64; ``otherwise`` when none holds it, which a processor's conversion makes the lowest."""
    return np.int64(value if -(2.0**63) <= value < 2.0**63 else otherwise)


# One number at a time, and the same for arrays: double precision


def to_codes(values: Any, low: float, high: float, codes: Codes) -> Array:
    """The codes of float32 values in the range low…high, not limited to those there are (int64, or float64 if huge).

    ``round(v * k) - round(low * k) + lowest`` with ``k = steps / ((high - low) * steps / (steps - 1))``. The two
    roundings are apart, so that 0.0 always is exactly one code.
    """
    if low == high:
        return np.full(np.shape(values), codes.low, np.int64)
    with np.errstate(all="ignore"):
        scale = codes.steps / (width(low, high) * (codes.steps / (codes.steps - 1.0)))
        rounded = half_away(np.asarray(values, np.float64) * scale) - half_away(low * scale)
        limited = np.clip(np.nan_to_num(rounded, nan=0.0), -(2.0**62), 2.0**62)
    return np.asarray(limited.astype(np.int64) + codes.low)


def to_code(value: float, low: float, high: float, codes: Codes) -> int:
    """The code of one number, not limited to those there are."""
    return int(to_codes(value, low, high, codes))


def limited(values: Any, codes: Codes) -> Any:
    """Whole numbers kept within the codes there are."""
    return np.clip(values, codes.low, codes.high)


def limited_code(value: float, low: float, high: float, codes: Codes) -> int:
    """The nearest code that there is."""
    return min(max(to_code(value, low, high, codes), codes.low), codes.high)


def from_codes(values: Any, low: float, high: float, codes: Codes) -> Array:
    """The float32 values of codes in the range low…high: ``round(low / s) * s + (q - lowest) * s``.

    The grid of values is that of all multiples of the step ``s``, so the ends of the range are moved by up to half a
    step. Codes are taken as float32, which rounds those of 32 bits, as the original's conversion of a qint32 does.
    """
    if low == high:
        return np.full(np.shape(values), low, F32)
    scale = width(low, high) * (codes.steps / (codes.steps - 1.0)) / codes.steps
    step = F32(scale)
    start = float(F32(half_away(F32(low) / step)) * step)
    exact = np.asarray(values).astype(F32).astype(np.float64)
    return np.asarray((start + (exact - codes.low) * scale).astype(F32))


def from_code(code: int, low: float, high: float, codes: Codes) -> Any:
    """The float32 that one code stands for."""
    return F32(from_codes(code, low, high, codes))


def moved(values: Array, old: tuple[float, float], kind: Codes, new: tuple[float, float], wanted: Codes) -> Array:
    """Codes of one range as codes of another, number by number (int64)."""
    return np.asarray(limited(to_codes(from_codes(values, *old, kind), *new, wanted), wanted))


def moved_on_line(values: Array, old: tuple[float, float], kind: Codes, new: tuple[float, float]) -> Array:
    """Codes of one range as int32 codes of another, on the straight line through the codes 0 and 1 (int64)."""
    at_zero, at_one = (to_code(float(from_code(code, *old, kind)), *new, WIDE) for code in (0, 1))
    return np.asarray(limited(at_zero + values.astype(np.int64) * (at_one - at_zero), WIDE))


CHUNK = 1 << 14  # elements: their float64 form stays in the processor's cache
JUST_UNDER_HALF = 0.49999999999999994  # the float64 before 0.5; adding 0.5 would round 0.49999999999999994 up


def byte_codes(values: Array, low: float, high: float) -> Array:
    """The uint8 codes of weights: ``to_codes``, limited to 0…255, for arrays of many millions.

    What has no number, because of NaN or infinity, becomes 0.
    """
    low, high = float(low), float(high)  # a NumPy float32 would keep what follows in float32
    with np.errstate(all="ignore"):
        scale = BYTE.steps / (width(low, high) * (BYTE.steps / (BYTE.steps - 1.0)))
        flat = np.ascontiguousarray(values).reshape(-1)
        result: Array = np.zeros(values.shape, np.uint8)
        flat_result = result.reshape(-1)
        if np.isnan(low * scale):
            return result
        base = np.int32(_rounded(low * scale))
        may_have_nan = not np.isfinite(flat.sum())
        product, half, level = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK, np.int32)
        for start in range(0, flat.size, CHUNK):
            part = flat[start : start + CHUNK]
            p, h, q = product[: part.size], half[: part.size], level[: part.size]
            np.multiply(part, scale, out=p, dtype=np.float64)
            np.copysign(JUST_UNDER_HALF, p, out=h)
            np.add(p, h, out=p)
            np.copyto(q, p, casting="unsafe")
            np.subtract(q, base, out=q)
            np.clip(q, 0, BYTE.high, out=q)
            if may_have_nan:
                q[np.isnan(p)] = 0
            flat_result[start : start + CHUNK] = q
    return result


def _rounded(value: float) -> float:
    return float(np.trunc(value + np.copysign(JUST_UNDER_HALF, value)))


# Whole arrays in float32


def quantized_first(x: Array, low: float, high: float, codes: Codes) -> Array:
    """The codes of an array in the range low…high, by the float32 formula of the MIN_FIRST mode."""
    span = width(low, high)
    scale = F32(0) if low == high else F32((codes.steps - 1.0) / span)
    with np.errstate(all="ignore"):
        start = F32(half_away(F32(low) * scale)) - F32(codes.low)
        scaled = np.clip(x.astype(F32) * scale, -F32(LARGEST_FLOAT), F32(LARGEST_FLOAT))  # infinity has no remainder
        values = half_away(scaled) - start
    top = LARGEST_WHOLE if codes.high > 1 << 24 else F32(codes.high)
    values = np.minimum(np.maximum(values, F32(codes.low)), top)
    return np.asarray(np.nan_to_num(values).astype(np.int64).astype(codes.dtype))


def dequantized_first(q: Array, low: float, high: float, codes: Codes) -> Array:
    """The float32 values of codes in the range low…high, by the formula of the MIN_FIRST mode."""
    scale = F32(width(low, high) / (codes.steps - 1.0))
    with np.errstate(all="ignore"):
        start = F32(low) if low == high else F32(half_away(F32(low) / scale)) * scale
        offset = F32(start - F32(codes.low) * scale)
        return np.asarray(q.astype(F32) * scale + offset)


def check_modes(mode: str, round_mode: str) -> None:
    """Refuses modes of QuantizeV2 and Dequantize that there are not.

    Raises:
        RunError: a mode is unknown, or the two do not go together.
    """
    if mode not in MODES:
        raise RunError(f"Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '{mode}'")
    if round_mode not in ROUND_MODES:
        raise RunError(f"Round mode string must be 'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN', is '{round_mode}'")
    if round_mode == "HALF_TO_EVEN" and mode != "SCALED":
        raise RunError(f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'")


def widened_range(low: float, high: float, least: float = 0.01) -> tuple[float, float]:
    """A range with zero inside, at least ``least`` times its largest end (or 1) wide.

    Raises:
        RunError: ``high`` is below ``low``, or one of them is no number.
    """
    if high < low:
        raise RunError("input_max_range must be larger than input_min_range.")
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RunError(f"the range {low:g}…{high:g} is none: both ends must be finite numbers")
    bottom = min(0.0, low)
    gap = F32(max(1.0, abs(low), abs(high))) * F32(least)
    return bottom, max(0.0, high, float(F32(bottom) + gap))


def scaled_range(low: float, high: float, codes: Codes, narrow: bool) -> tuple[float, float, Any]:
    """The range of the SCALED mode, in which a code is a multiple: (low, high, codes a unit)."""
    smallest, largest = F32(codes.low + (1 if narrow else 0)), F32(codes.high)
    with np.errstate(all="ignore"):
        by_low = smallest / F32(low) if smallest * F32(low) > 0 else F32(LARGEST_FLOAT)
        by_high = largest / F32(high) if largest * F32(high) > 0 else F32(LARGEST_FLOAT)
        scale = min(by_low, by_high)
        ends = [float(end) if abs(end) >= SMALLEST_NORMAL else 0.0 for end in (smallest / scale, largest / scale)]
        return ends[0], ends[1], scale


def quantized(
    x: Array,
    low: float,
    high: float,
    codes: Codes,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow: bool = False,
    least: float = 0.01,
) -> tuple[Array, float, float]:
    """What QuantizeV2 gives for one range: (codes, the range used).

    Args:
        x: the values, taken as float32.
        low, high: the range; it is widened first (``widened_range``).
        codes: the type of the result.
        mode, round_mode: as the op's attributes.
        narrow: leave the lowest code out (SCALED only).
        least: how wide the range must be.

    Raises:
        RunError: see ``widened_range``.
    """
    low, high = widened_range(low, high, least)
    wide = x.astype(F32)
    if mode == "MIN_FIRST":
        return quantized_first(wide, low, high, codes), low, high
    with np.errstate(all="ignore"):
        if mode == "SCALED":
            low, high, scale = scaled_range(low, high, codes, narrow)
            inside = np.minimum(np.maximum(wide, F32(low)), F32(high)) * scale
            return cast(np.rint(inside) if round_mode == "HALF_TO_EVEN" else half_away(inside), codes), low, high
        if low == high:
            return np.full(x.shape, codes.low, codes.dtype), low, high
        scale = F32((codes.high - codes.low) / width(low, high))
        inside = (np.minimum(np.maximum(wide, F32(low)), F32(high)) - F32(low)) * scale
        whole = half_away(inside - F32(codes.half)) if codes.signed else np.trunc(inside + F32(0.5))
    return cast(whole, codes), low, high


def dequantized(q: Array, low: float, high: float, mode: str, narrow: bool = False) -> Array:
    """The float32 values of codes in the range low…high, as Dequantize gives them."""
    codes = codes_of(q.dtype)
    if mode == "MIN_FIRST":
        return dequantized_first(q, low, high, codes)
    if mode == "SCALED":
        largest = F32(high) / F32(codes.high)
        smallest = F32(low) / F32(codes.low + (1 if narrow else 0)) if codes.signed else largest
        return np.asarray(q.astype(F32) * max(smallest, largest))
    scale = F32(F32(width(low, high)) / F32(codes.high - codes.low))
    return np.asarray((q.astype(F32) + F32(codes.half)) * scale + F32(low))


# Which range a result has

BIAS_HEADROOM = F32(1 << 17)
"""How many times the largest operand the range of a biased sum is."""
SUM_HEADROOM = F32(1 << 14)
"""The same for QuantizedAdd."""


def product_range(a: tuple[float, float], kind_a: Codes, b: tuple[float, float], kind_b: Codes) -> tuple[float, float]:
    """The range of int32 codes that are sums of products of codes of the ranges ``a`` and ``b``."""
    with np.errstate(all="ignore"):
        levels = [F32(width(*limits)) / F32(kind.high - kind.low) for limits, kind in ((a, kind_a), (b, kind_b))]
        level = levels[0] * levels[1]
        return float(level * F32(WIDE.low)), float(level * F32(WIDE.high))


def sum_range(*ends: float) -> tuple[float, float]:
    """The range of QuantizedAdd's result for operands of these ends of ranges."""
    high = float(F32(max(abs(end) for end in ends)) * SUM_HEADROOM)
    return -high, high


def bias_range(low: float, high: float, low_bias: float, high_bias: float) -> tuple[float, float]:
    """The range of QuantizedBiasAdd's result."""
    top = float(F32(max(high, -low, high_bias, -low_bias)) * BIAS_HEADROOM)
    return -top, top


def joint_range(lows: list[float], highs: list[float], codes: Codes) -> tuple[float, float]:
    """The range of QuantizedConcat's result, its lower end at most 0; that of a signed type is symmetrical."""
    low, high = min(0.0, *lows), max(highs)
    if codes.signed:
        high = max(abs(low), abs(high))
        low = -high
    return low, high


def used_range(codes: Array, low: float, high: float) -> tuple[float, float]:
    """The floats of the smallest and the largest of some int32 codes, the former at most 0.

    Only the smallest is held to zero, as in the original: codes that are all negative give a negative upper end.
    """
    smallest = int(codes.min()) if codes.size else WIDE.high
    largest = int(codes.max()) if codes.size else WIDE.low
    return min(0.0, float(from_code(smallest, low, high, WIDE))), float(from_code(largest, low, high, WIDE))


FRACTION = 16
"""Fixed point: the binary digits of a fraction."""


def requantized(codes: Array, low: float, high: float, new_low: float, new_high: float) -> Array:
    """int32 codes of low…high as uint8 codes of new_low…new_high, in fixed point as the original does it."""
    span, new_span = width(low, high), width(new_low, new_high)
    one = 1 << FRACTION
    reciprocal = 0.0 if new_span == 0 else float(F32(255.0 / new_span))
    middle = float(F32(float(F32(low) + F32(high)) / 2.0))
    # where a narrow range asks for more than 64 bits, numbers wrap round as there
    scale = whole64(0.0 if new_span == 0 else 255.0 * one * span / new_span, otherwise=0)
    start = whole64(float(F32(F32(middle) * F32(reciprocal)) * F32(one)))
    bottom = whole64(0.0 if new_span == 0 else float(half_away(one * (new_low * 255.0) / new_span)))
    found = ((codes.astype(np.int64) * scale) >> 32) + start - bottom + (1 << (FRACTION - 1))
    return np.asarray(np.clip(found >> FRACTION, 0, 255).astype(np.uint8))


# Simulated quantization


def nudged(low: Array, high: Array, num_bits: int, narrow_range: bool) -> tuple[Array, Array, Array]:
    """(low, high, scale) moved so that zero is exactly a step, in float32, element by element.

    Raises:
        RunError: ``num_bits`` is not from 2 to 16.
    """
    if not 2 <= num_bits <= 16:
        raise RunError(f"num_bits must be between 2 and 16, inclusive, not {num_bits}")
    smallest, largest = F32(1 if narrow_range else 0), F32((1 << num_bits) - 1)
    with np.errstate(all="ignore"):
        scale = (high - low) / (largest - smallest)
        zero = smallest - low / scale
        point = np.where(zero < smallest, smallest, np.where(zero > largest, largest, half_away(zero)))
        return np.asarray((smallest - point) * scale), np.asarray((largest - point) * scale), np.asarray(scale)
