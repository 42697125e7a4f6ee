"""The move of wide codes to eight bits in float32, against the original's fixed point in whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    BYTE,
    F32,
    dequantized_first,
    half_away,
    quantized_first,
    requantized,
    width,
)
from pocketgraph.runtime.eight_bit.fixed_point import moved, parts, simplest
from pocketgraph.runtime.eight_bit.range_numbers import COMPUTED
from pocketgraph.runtime.eight_bit.ranges import moving_line


def computed(op: str, *operands: Any) -> Array:
    return np.asarray(COMPUTED[op](*(F32(o) if isinstance(o, float) else o for o in operands)))


def limits_of(unit: float) -> tuple[float, float]:
    """The range of wide codes that are worth so much."""
    return -float(F32(unit)) * 2.0**31, float(F32(unit)) * 2.0**31


def form(unit: float, low: float, high: float) -> tuple[float, float]:
    """(factor, offset) of the move to a range."""
    return 255.0 * float(F32(unit)) / width(low, high), 0.5 - float(
        half_away(65536 * (low * 255.0) / width(low, high))
    ) / 65536


def codes_in_float(codes: Array, factors: list[float], offset: float, finely: bool) -> Array:
    found = moved(computed, codes.astype(F32), [F32(part) for part in factors], F32(offset), finely=finely)
    return np.clip(found, 0, 255).astype(np.uint8)


@example(0.001, 46.40715211188996, -8.111728083308073)  # in double, 538315 is at the next code already
@example(21.458140203937603, 21.458140203937603, -8.111728083308073)  # multiples of 10,000 are between two codes
@example(0.125, 6.0, -8.111728083308073)  # 846,666 times the first part, where that is rounded up, is above 256
@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 50), st.floats(0.01, 50), st.floats(np.log(3e-4), np.log(0.3)))
def test_every_wide_code_moves_as_in_the_original(below: float, above: float, step: float) -> None:
    """All that come to one of the codes, the last before and the first of each among them."""
    low, high = float(F32(-below)), float(F32(above))
    unit = float(np.exp(step)) * (high - low) / 255
    factor, offset = form(unit, low, high)
    factors, finely = simplest(factor, offset)
    changes = np.ceil((np.arange(1, 256) - offset) / factor)
    codes = np.unique(np.concatenate([changes - 1, changes, np.linspace(-offset / factor, 255 / factor, 5000).round()]))
    expected = requantized(codes.astype(np.int32), *limits_of(unit), low, high)
    wrong = codes[codes_in_float(codes, factors, offset, finely) != expected]
    places = wrong * factor + offset
    assert np.all(np.abs(places - np.rint(places)) < 2.0**-25)  # three float32 hold no more


@pytest.mark.parametrize(
    ("code", "top", "low", "high", "expected"),
    [
        (3882, 1415235.125, -11.225420951843262, 12.604090690612793, 147),
        (-882, 11496115.0, -85.10401916503906, 53.862186431884766, 147),
    ],
)
def test_codes_a_hundred_millionth_below_the_next(
    code: int, top: float, low: float, high: float, expected: int
) -> None:
    """Two that met photos; the range of a MobileNet's layer was found while it ran."""
    factor, offset = form(top / 2**31, low, high)
    codes = np.array([code])
    assert requantized(codes.astype(np.int32), -top, top, low, high) == expected
    assert codes_in_float(codes, parts(factor, 3), offset, True) == expected
    factors, finely = simplest(factor, offset)
    assert codes_in_float(codes, factors, offset, finely) == expected


def test_the_parts_of_a_factor_add_up_to_it() -> None:
    for factor in np.exp(np.random.default_rng(0).uniform(-10, 2, 100)):
        for count, digits in ((1, 2.0**-24), (2, 2.0**-40), (3, 2.0**-44)):
            found = parts(float(factor), count)
            assert len(found) == count
            assert abs(sum(found) - factor) <= digits * max(1, factor)


def test_a_factor_of_zero_moves_everything_to_one_code() -> None:
    factors, finely = simplest(0.0, 7.5)
    np.testing.assert_array_equal(codes_in_float(np.array([-5, 0, 1000]), factors, 7.5, finely), 7)


def test_codes_of_one_range_in_a_wider_one_lie_on_a_line() -> None:
    random = np.random.default_rng(0)
    every, found = np.arange(256, dtype=np.uint8), 0
    for _ in range(300):
        low, high = -float(F32(random.uniform(0, 3))), float(F32(random.uniform(0.1, 3)))
        wanted = low * float(F32(random.uniform(1, 2))), high * float(F32(random.uniform(1, 4)))
        line = moving_line((low, high), wanted)
        if line is not None:
            found += 1
            expected = quantized_first(dequantized_first(every, low, high, BYTE), *wanted, BYTE)
            np.testing.assert_array_equal(np.floor(every.astype(F32) * line[0] + line[1]), expected)
    assert found > 250
    assert moving_line((0.0, 0.0), (0.0, 1.0)) is None
    assert moving_line((0.0, 1.0), (1.0, 1.0)) is None
