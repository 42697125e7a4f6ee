"""The numbers that ranges and codes are made of, computed by the fast engine in floats, against double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph import Session
from pocketgraph.graph import Node
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    BYTE,
    WIDE,
    dequantized_first,
    from_code,
    half_away,
    limited_code,
    quantized_first,
    sum_range,
    to_code,
)
from pocketgraph.runtime.eight_bit.exact_rewriting import has_no_halves
from pocketgraph.runtime.eight_bit.range_numbers import RangeNumber
from pocketgraph.runtime.eight_bit.ranges import RangeWriter, Span

F32 = np.float32
COUNT = 5000


def numbers(made: Callable[..., Sequence[RangeNumber]], *feeds: Array) -> Array:
    """What the fast engine computes of single numbers, for many of them at once; one row a result."""
    names = "abc"[: len(feeds)]
    graph = parse("\n".join(f"{name} = Placeholder(dtype=float, shape=[{COUNT}])" for name in names))
    writer = RangeWriter(graph.nodes)
    writer.begin(Node("made", "NoOp"))
    found = made(writer, *(RangeNumber(None, name) for name in names))
    graph = graph.replace([*graph, *writer.nodes])
    with Session(graph, 1) as session:
        results = session.run([number.ref for number in found], dict(zip(names, feeds, strict=True)))
    return np.array(results, np.float64)


def ranges(seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    low, high = (np.exp(random.uniform(-4, 4, COUNT)).astype(F32) for _ in range(2))
    return -low, high


def test_the_ends_of_a_wide_range_are_those_of_double_precision() -> None:
    top = np.exp(np.random.default_rng(1).uniform(-2, 18, COUNT)).astype(F32)
    scale, lost, below = numbers(lambda w, t: [*w.wide_scale(t), w.below_zero(t)], top)
    for index, value in enumerate(map(float, top)):
        assert scale[index] == F32((2**32 - 1) / (2 * value))
        assert lost[index] == quantized_first(np.zeros(1, F32), -value, value, WIDE)[0]
    expected = [limited_code(0.0, -value, value, WIDE) for value in map(float, top)]
    assert set(expected) == {0, -1}
    np.testing.assert_array_equal(below, expected)


def test_the_range_that_wide_codes_use_is_rounded_as_from_double_precision() -> None:
    random = np.random.default_rng(2)
    codes = np.concatenate([random.integers(-(2**bits), 2**bits, COUNT // 2) for bits in (19, 24)])
    units = np.exp(random.uniform(-12, 2, COUNT)).astype(F32)
    (found,) = numbers(lambda w, c, u: [w.wide_value(c, u)], codes.astype(F32), units)
    half = [float(unit) * 2.0**31 for unit in units]
    expected = [from_code(int(code), -end, end, WIDE) for code, end in zip(codes, half, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, np.float64))


def test_codes_of_a_range_found_while_running() -> None:
    def made(writer: RangeWriter, low: RangeNumber, high: RangeNumber) -> list[RangeNumber]:
        span = Span(low, high)
        start, step = writer.start(span)
        return [start, writer.second(span, start, step), writer.zero(span), writer.code(span, 6.0)]

    lows, highs = ranges(3)
    start, second, zero, six = numbers(made, lows, highs)
    pairs = [(float(low), float(high)) for low, high in zip(lows, highs, strict=True)]
    np.testing.assert_array_equal(start, [float(from_code(0, *pair, BYTE)) for pair in pairs])
    assert np.mean(second != [float(from_code(1, *pair, BYTE)) for pair in pairs]) < 0.01
    np.testing.assert_array_equal(zero, [to_code(0.0, *pair, BYTE) for pair in pairs])
    np.testing.assert_array_equal(six, [limited_code(6.0, *pair, BYTE) for pair in pairs])


def test_the_code_of_zero_is_right_where_ranges_are_those_of_pictures() -> None:
    """Ends that are whole pixels put zero just beside half a step, nearer than float32 can tell."""
    pixels = np.random.default_rng(8).integers(0, 120, (2, COUNT))
    pixels[:, 0] = 0  # -1…1; of others of two equal sides the 53rd digit decides
    pixels[1, 1:] += pixels[0, 1:] == pixels[1, 1:]
    lows, highs = (pixels[0] / 127.5 - 1).astype(F32), ((255 - pixels[1]) / 127.5 - 1).astype(F32)
    (zero,) = numbers(lambda w, low, high: [w.zero(Span(low, high))], lows, highs)
    expected = [to_code(0.0, float(low), float(high), BYTE) for low, high in zip(lows, highs, strict=True)]
    np.testing.assert_array_equal(zero, expected)


def test_the_line_of_a_sum_goes_through_the_codes_of_the_original() -> None:
    lows, highs = ranges(4)
    tops = np.array([sum_range(float(low), float(high))[1] for low, high in zip(lows, highs, strict=True)], F32)
    (found,) = numbers(lambda w, v, t: [w.whole_ratio(v, t)], lows, tops)
    for value, top, code in zip(map(float, lows), map(float, tops), found, strict=True):
        assert code == to_code(value, -top, top, WIDE) - to_code(0.0, -top, top, WIDE)


def test_the_factor_to_another_range_has_as_many_digits_as_fixed_point_needs() -> None:
    lows, highs = ranges(5)
    units = (np.exp(np.random.default_rng(6).uniform(-12, -6, COUNT)) * (highs - lows)).astype(F32)

    def made(writer: RangeWriter, unit: RangeNumber, low: RangeNumber, high: RangeNumber) -> list[RangeNumber]:
        factors, offset = writer.factors(unit, Span(low, high))
        return [*factors, offset]

    *factors, offset = numbers(made, units, lows, highs)
    width = (highs - lows).astype(np.float64)
    np.testing.assert_allclose(np.sum(factors, axis=0), 255.0 * units.astype(np.float64) / width, rtol=1e-11)
    np.testing.assert_array_equal(factors[0] * 2**16, np.rint(factors[0] * 2**16))
    np.testing.assert_array_equal(offset, 0.5 - half_away(65536 * (lows.astype(np.float64) * 255) / width) / 65536)


def test_halves_below_zero_are_rounded_away_from_it() -> None:
    """-0.5 and -1.5 wide codes, as code and as bias: QuantizedBiasAdd rounds each before they are added."""
    for low, high in ((-1.0, 1.0), (-0.99609375, 0.99609375), (-2.0, 0.5)):
        span = Span(RangeNumber(low), RangeNumber(high))
        for power in range(8, 20):
            scale = float(2**power)
            values = dequantized_first(np.arange(256, dtype=np.uint8), low, high, BYTE) * F32(scale)
            is_alike = np.array_equal(np.floor(values + F32(0.5)), half_away(values))
            assert has_no_halves(span, RangeNumber(scale)) == is_alike
    assert not has_no_halves(Span(RangeNumber(None, "low"), RangeNumber(None, "high")), RangeNumber(1.0))
    assert not has_no_halves(Span(RangeNumber(-1.0), RangeNumber(1.0)), RangeNumber(None, "scale"))
