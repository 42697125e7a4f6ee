"""Ranges of eight-bit codes, and codes moved into and out of them, written as float operations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    BYTE,
    F32,
    WIDE,
    dequantized_first,
    half_away,
    quantized_first,
    to_code,
    widened_range,
)
from pocketgraph.runtime.eight_bit.fixed_point import moved, parts, simplest
from pocketgraph.runtime.eight_bit.range_numbers import HALF_RANGE, SMALLEST_WIDTH, TENS, RangeNodeWriter, RangeNumber


class Span(NamedTuple):
    """The range of eight-bit codes."""

    low: RangeNumber
    high: RangeNumber

    @property
    def known(self) -> tuple[float, float] | None:
        """Both ends, where both are known."""
        low, high = self.low.value, self.high.value
        return None if low is None or high is None else (low, high)


def moving_line(limits: tuple[float, float], wanted: tuple[float, float]) -> tuple[np.float32, np.float32] | None:
    """(gain, offset) for which ``floor(code * gain + offset)`` in float32 is the code that QuantizedConcat gives.

    Args:
        limits: the range of the code.
        wanted: the range into which it is moved.

    Returns:
        None where no line goes through all 256 codes.
    """
    every = np.arange(BYTE.steps, dtype=BYTE.dtype)
    levels = quantized_first(dequantized_first(every, *limits, BYTE), *wanted, BYTE).astype(np.float64)
    if not limits[0] < limits[1] or not wanted[0] < wanted[1]:
        return None
    gain = F32((limits[1] - limits[0]) / (wanted[1] - wanted[0]))
    products = every.astype(F32) * gain
    offset = F32(((levels - products).max() + (levels + 1 - products).min()) / 2)
    return (gain, offset) if np.array_equal(np.floor(products + offset), levels) else None


class RangeWriter(RangeNodeWriter):
    """Writes what follows from ranges, which are known or found while the graph runs.

    Wide codes are of 32 bits: each is worth ``unit``, and zero is the code 0.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        super().__init__(taken)
        self.zeros: dict[Span, RangeNumber] = {}

    def widened(self, low: RangeNumber, high: RangeNumber, least: float) -> Span:
        """The range that QuantizeV2 makes of the one that is asked for."""
        known = Span(low, high).known
        if known is not None:
            ends = widened_range(*known, least)
            return Span(RangeNumber(ends[0]), RangeNumber(ends[1]))
        do = self.number
        bottom = do("Minimum", low, 0.0)
        largest = do("Maximum", do("Maximum", do("Abs", low), do("Abs", high)), 1.0)
        least_top = do("Add", bottom, do("Mul", largest, float(F32(least))))
        return Span(bottom, do("Maximum", do("Maximum", high, 0.0), least_top))

    def step(self, span: Span) -> RangeNumber:
        """What one code is worth."""
        return self.number("RealDiv", self.number("Sub", span.high, span.low), float(BYTE.high))

    def zero(self, span: Span) -> RangeNumber:
        """The code of zero."""
        known = span.known
        return RangeNumber(float(to_code(0.0, *known, BYTE))) if known is not None else self.below(span, 0.0)

    def in_a_byte(self, code: RangeNumber) -> RangeNumber:
        """What a byte holds of a code."""
        do = self.number
        return do("Sub", code, do("Mul", do("Floor", do("Mul", code, 1 / BYTE.steps)), float(BYTE.steps)))

    def below(self, span: Span, value: float) -> RangeNumber:
        """``value`` in steps above the low end, both rounded by themselves.

        To more digits than float32 has: pictures come in steps themselves, which often meet half a step of a range.
        """
        do = self.number
        width = do("Maximum", do("Sub", span.high, span.low), SMALLEST_WIDTH)
        if span not in self.zeros:
            self.zeros[span] = self.nearest(*self.ratio(do("Mul", span.low, -1.0), width))
        return (
            do("Add", self.nearest(*self.ratio(RangeNumber(value), width)), self.zeros[span])
            if value
            else self.zeros[span]
        )

    def code(self, span: Span, value: float) -> RangeNumber:
        """The code of a positive number, at most the largest that there is."""
        known = span.known
        found = RangeNumber(float(to_code(value, *known, BYTE))) if known is not None else self.below(span, value)
        return self.number("Minimum", found, float(BYTE.high))

    def start(self, span: Span) -> tuple[RangeNumber, RangeNumber]:
        """(what the code 0 stands for, what one code is worth), as Dequantize has them."""
        do, step = self.number, self.step(span)
        known = span.known
        if known is not None and step.value is not None:
            low = F32(known[0])
            return RangeNumber(float(half_away(low / F32(step.value)) * F32(step.value) if step.value else low)), step
        held = do("Maximum", step, SMALLEST_WIDTH)
        divided = do("RealDiv", do("Mul", span.low, -1.0), held)
        return do("Mul", do("Floor", do("Add", divided, 0.5)), do("Mul", held, -1.0)), step

    def values(self, codes: str, span: Span) -> tuple[str, RangeNumber]:
        """Codes times what they are worth; and what is to be added for them to be values."""
        start, step = self.start(span)
        return self.scaled(codes, step), start

    def codes(self, values: str, span: Span) -> str:
        """The codes of values, by the float32 formula of the MIN_FIRST mode."""
        do = self.number
        known = span.known
        if known is not None:
            width = float(F32(known[1]) - F32(known[0]))
            scale = RangeNumber(float(F32(255.0 / width)) if width else 0.0)
            start = RangeNumber(float(half_away(F32(known[0]) * F32(scale.value or 0.0))))
        else:
            scale = do("RealDiv", 255.0, do("Maximum", do("Sub", span.high, span.low), SMALLEST_WIDTH))
            start = do("Mul", do("Floor", do("Add", do("Mul", do("Mul", span.low, -1.0), scale), 0.5)), -1.0)
        scaled = self.scaled(values, scale)
        rounded = self.away(scaled)
        moved = rounded if start.value == 0 else self.op("Sub", rounded, start)
        return self.op("Minimum", self.op("Relu", moved), float(BYTE.high))

    def moved(self, codes: str, span: Span, wanted: Span) -> str:
        """Codes of one range as those of another that contains it: values, and these rounded again.

        Where both are known a line through the 256 codes is looked for that, cut to whole numbers, gives just that.
        """
        if span.known is not None and wanted.known is not None:
            line = moving_line(span.known, wanted.known)
            if line is not None:
                gain, offset = (RangeNumber(float(number)) for number in line)
                return self.op("Floor", self.op("Add", self.op("Mul", codes, gain), offset))
        scaled, start = self.values(codes, span)
        return self.codes(self.scaled(scaled, RangeNumber(1.0), start), wanted)

    def used(self, codes: str, unit: RangeNumber, rank: int | None) -> Span:
        """The range that RequantizationRange finds in codes of ``rank`` dimensions."""
        ends = []
        if rank is None:
            codes, rank = self.op("Reshape", codes, self.whole([-1]), Tshape=INT32), 1
        for op in ("Min", "Max"):
            end = self.op(op, codes, self.whole(list(range(rank))), Tidx=INT32, keep_dims=False)
            ends.append(RangeNumber(None, end))
        low, high = self.apart(self.wide_value(self.together(*ends), unit), 2)
        return Span(self.number("Minimum", low, 0.0), high)

    def wide_value(self, code: RangeNumber, unit: RangeNumber) -> RangeNumber:
        """What a wide code is worth: ``(code * (1 + 2^-32) + 1/2) * unit``, rounded to float32 as from double."""
        do = self.number
        value, error = self.product(code, unit)  # the half stays apart: from 2^23 on, no float32 holds both
        return do("Add", value, do("Add", error, do("Mul", do("Add", do("Mul", code, 2.0**-32), 0.5), unit)))

    def second(self, span: Span, first: RangeNumber, step: RangeNumber) -> RangeNumber:
        """What the code 1 stands for: ``first + step``, with a step of more digits than float32 has."""
        do = self.number
        back, error = self.times_255(step)
        lost = do("RealDiv", do("Sub", do("Sub", do("Sub", span.high, span.low), back), error), 255.0)
        total = do("Add", first, step)
        part = do("Sub", total, first)
        rest = do("Add", do("Sub", first, do("Sub", total, part)), do("Sub", step, part))
        return do("Add", total, do("Add", rest, lost))

    def requantized(self, codes: str, unit: RangeNumber, wanted: Span, *, limited: bool) -> str:
        """Wide codes as eight-bit codes of a range; ``limited``: some may lie beyond its upper end.

        Source: RequantizeManyInNewRange in tensorflow/core/kernels/quantization_utils.h.
        """
        factors, offset = self.factors(unit, wanted)
        is_known = None not in [number.value for number in (*factors, offset)]
        finely = not is_known
        if is_known and unit.value is not None:
            width = self.number("Sub", wanted.high, wanted.low).value
            few, finely = simplest(255.0 * unit.value / width if width else 0.0, offset.value or 0.0)
            factors = [RangeNumber(factor) for factor in few]
        found = self.op("Relu", moved(self.op, codes, factors, offset, finely=finely))
        return self.op("Minimum", found, float(BYTE.high)) if limited else found

    def factors(self, unit: RangeNumber, wanted: Span) -> tuple[list[RangeNumber], RangeNumber]:
        """What a wide code is worth in codes of a range, in three parts; and where its code 0 lies, plus a half."""
        do, known = self.number, wanted.known
        width = do("Sub", wanted.high, wanted.low)
        if known is not None and unit.value is not None:
            exact = 255.0 * unit.value / width.value if width.value else 0.0
            bottom = half_away(TENS[0] * (known[0] * 255.0) / width.value) / TENS[0] if width.value else 0.0
            return [RangeNumber(part) for part in parts(exact, 3)], RangeNumber(float(0.5 - bottom))
        width = do("Maximum", width, SMALLEST_WIDTH)
        if known is not None:
            high, low = self.ratio(unit, width)
            offset = RangeNumber(float(0.5 - half_away(TENS[0] * (known[0] * 255.0 / (width.value or 1))) / TENS[0]))
        else:
            both = self.ratio(self.together(unit, do("Mul", wanted.low, -1.0)), width)
            (high, high_offset), (low, low_offset) = (self.apart(part, 2) for part in both)
            self.zeros[wanted] = self.nearest(high_offset, low_offset)
            levels = do("Mul", high_offset, TENS[0])
            below = do("Floor", levels)
            beyond = do("Add", do("Sub", levels, below), do("Add", do("Mul", low_offset, TENS[0]), 0.5))
            offset = do("Add", do("Mul", do("Add", below, do("Floor", beyond)), 1 / TENS[0]), 0.5)
        parts_now = [self.on_grid(high, TENS[0])]
        left = do("Sub", high, parts_now[0])
        parts_now.append(self.on_grid(left, TENS[1]))
        return [*parts_now, do("Add", do("Sub", left, parts_now[1]), low)], offset

    def whole_ratio(self, value: RangeNumber, top: RangeNumber) -> RangeNumber:
        """The wide code of a value in the range -top…top: ``value * (2^32 - 1) / (2 * top)``, rounded."""
        do = self.number
        scaled = do("Mul", value, HALF_RANGE)
        found = do("Floor", do("Add", do("RealDiv", scaled, top), 0.5))
        back, error = self.product(found, top)
        left = do("Sub", do("Sub", do("Sub", scaled, back), error), do("Mul", value, 0.5))
        return do("Add", found, do("Floor", do("Add", do("RealDiv", left, top), 0.5)))

    def below_zero(self, top: RangeNumber) -> RangeNumber:
        """The wide code of 0 in the range -top…top: 0 or -1, as double precision has it.

        The original takes ``top * (2^32 / (2 * top * f))``, which is 2^31 - 1/2, and rounds; the 53rd binary digits of
        the quotient decide. With ``m`` the 24 binary digits of ``top`` these are those of ``2^76 / m``, less what the
        factor ``f``, 1 + 2^-32, takes away: ``(2^44 - 2^12) / m``, and what rounding ``m * f`` to 53 digits adds,
        ``d``. Only the parts behind the point count, so remainders of powers of two do.
        """
        do = self.number
        if top.value is not None:
            return RangeNumber(float(to_code(0.0, -top.value, top.value, WIDE)))
        exponent = do("Floor", RangeNumber(None, self.op("Mul", self.op("Log", top), 1 / math.log(2))))
        m = do("RealDiv", top, RangeNumber(None, self.op("Pow", 2.0, exponent)))
        m = do("Mul", m, do("Sub", 1.0, do("Mul", do("Floor", do("Mul", m, 0.5)), 0.5)))
        m = do("Mul", do("Mul", m, do("Sub", 2.0, do("Minimum", do("Floor", m), 1.0))), 2.0**23)
        digits = self.op("Cast", m, SrcT=FLOAT, DstT=INT32)
        power = self.op("FloorMod", self.whole(1 << 30), digits, T=INT32)
        powers = []
        for factor in (1 << 7, 1 << 7, 1 << 7, 1 << 7, 1 << 7, 1 << 7, 1 << 4):  # of 2^30: 2^37, 2^44, … 2^76
            raised = self.op("Mul", power, self.whole(factor), T=INT32)
            power = self.op("FloorMod", raised, digits, T=INT32)
            powers.append(power)
        upper, lower = (
            RangeNumber(None, self.op("Cast", part, SrcT=INT32, DstT=FLOAT)) for part in (powers[-1], powers[1])
        )
        eighth = do("Mul", m, 0.125)
        d = do("Sub", RangeNumber(None, self.op("Round", eighth)), eighth)
        d = do("Mul", d, do("RealDiv", 2.0**47, m))
        fraction = do("RealDiv", do("Add", do("Sub", do("Sub", upper, lower), d), 2.0**12), m)
        error = do("Sub", RangeNumber(None, self.op("Round", fraction)), fraction)
        margin = do("Add", do("Sub", do("Mul", m, error), d), 2.0**22 + 2.0**12)
        return do("Maximum", do("Floor", do("Mul", margin, 2.0**-30)), -1.0)

    def wide_scale(self, top: RangeNumber) -> tuple[RangeNumber, RangeNumber]:
        """(wide codes a unit, what the original's float32 loses at the low end) of the range -top…top."""
        if top.value is not None:
            lost = quantized_first(np.zeros(1, F32), -top.value, top.value, WIDE)
            return RangeNumber(float(F32((WIDE.steps - 1.0) / (2 * top.value)))), RangeNumber(float(lost[0]))
        do = self.number
        scale = do("RealDiv", HALF_RANGE, top)  # should be (2^32 - 1) / (2 * top), which may be the float before it
        gap = do("Sub", scale, do("Mul", scale, 1 - 2.0**-24))
        back, error = self.product(scale, top)
        left = do("Sub", do("Sub", do("Sub", HALF_RANGE, back), error), 0.5)
        beyond = do("Add", left, do("Mul", do("Mul", gap, top), 0.5))
        below = do("Maximum", do("Floor", do("Mul", beyond, 2.0**-30)), -1.0)
        scale = do("Add", scale, do("Mul", gap, below))
        return scale, do("Sub", do("Mul", top, scale), HALF_RANGE)
