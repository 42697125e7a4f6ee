"""quantize_weights and round_weights: the arithmetic by its definition, and what stays lazy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, Tensor, const
from pocketgraph.graph.dtype import FLOAT, QUINT8
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.quantized.eight_bit_arithmetic import byte_codes
from pocketgraph.transforms import transform
from pocketgraph.transforms.rules.quantize_weights import quantization_range
from pocketgraph.transforms.rules.round_weights import rounded


def by_definition(values: list[float], low: float, high: float) -> list[int]:
    """MIN_FIRST in Python's float64, one value at a time, halves away from zero."""

    def away(x: float) -> int:
        return int(math.copysign(math.floor(abs(x) + 0.5) if abs(x) != 0.49999999999999994 else 0.0, x))

    scale = 256 / (float(np.float32(high) - np.float32(low)) * (256 / 255.0))
    return [min(255, max(0, away(value * scale) - away(low * scale))) for value in values]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=40))
def test_quantized_values_follow_the_definition(listed: list[float]) -> None:
    values = np.array(listed, np.float32)
    low, high = quantization_range(values)
    assert low <= 0 <= high
    assert byte_codes(values, low, high).tolist() == by_definition(values.tolist(), float(low), float(high))


def test_values_on_the_halves_are_rounded_away_from_zero() -> None:
    values = np.arange(-510, 511, dtype=np.float32) / 2
    low, high = quantization_range(values)
    assert (low, high) == (-255, 255)
    assert byte_codes(values, low, high).tolist() == by_definition(values.tolist(), -255, 255)


def test_more_values_than_one_chunk() -> None:
    values = np.random.default_rng(0).normal(size=50_001).astype(np.float32)
    low, high = quantization_range(values)
    assert byte_codes(values, low, high).tolist() == by_definition(values.tolist(), float(low), float(high))


def test_what_is_no_number_becomes_the_lowest_level() -> None:
    values = np.array([np.nan, 1, -1], np.float32)
    assert byte_codes(values, *quantization_range(values)).tolist() == [0, 255, 0]


def test_only_large_float_constants_are_quantized() -> None:
    graph = Graph(
        [
            const("small", np.ones(9, np.float32)),
            const("large", np.ones((2, 5), np.float32)),
            const("double", np.ones(10)),
            Node("placed", "Const", ["^small"], const("c", np.ones(10, np.float32)).attrs, "/cpu:0"),
        ]
    )
    result = transform(graph, "quantize_weights(minimum_size=10)")
    assert [node.name for node in result] == [
        "small", "large_quantized_const", "large_quantized_min", "large_quantized_max", "large", "double",
        "placed_quantized_const", "placed_quantized_min", "placed_quantized_max", "placed",
    ]  # fmt: skip
    levels = result["large_quantized_const"].tensor
    assert (levels.dtype, levels.shape) == (QUINT8, (2, 5))
    assert (result["placed"].device, result["placed"].control_inputs) == ("", ())


@pytest.mark.parametrize("rule", ["quantize_weights", "round_weights"])
def test_a_constant_without_type_or_value_is_an_error(rule: str) -> None:
    with pytest.raises(TransformError, match=f"{rule}: No 'dtype' attribute for Const node w"):
        transform(Graph([Node("w", "Const")]), rule)
    with pytest.raises(TransformError, match=f"{rule}: No 'value' attribute for Const node w"):
        transform(Graph([Node("w", "Const", (), {"dtype": FLOAT})]), rule)


@pytest.mark.parametrize(
    "rule", ["remove_device", "strip_unused_nodes", "sort_by_execution_order", "remove_nodes(op=Identity)"]
)
def test_weights_that_a_rule_does_not_change_are_not_read(rule: str) -> None:
    def read() -> np.ndarray[Any, Any]:
        raise AssertionError("the weights were read")

    weights = const("w", Tensor(FLOAT, (1000, 1000), read=read), device="/gpu:0")
    graph = Graph([weights, *parse("r = Identity(w, T=float)\ny = Relu(r, T=float)")], outputs=["y"])
    assert "w" in transform(graph, rule)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=40), st.integers(1, 300))
def test_rounded_values_follow_the_definition(listed: list[float], steps: int) -> None:
    f = np.float32
    values = np.array(listed, f)
    low, high = values.min(), max(values.max(), np.finfo(f).tiny)
    if low == high:
        high = low + f(1) if abs(low) < 1e-6 else f(2) * low
    width = (high - low) / f(steps)
    with np.errstate(all="ignore"):
        expected = [low + width * (np.floor((value - low) / width) + f(0.5)) for value in values]
    np.testing.assert_array_equal(rounded(values, steps), np.array(expected, f))


def test_rounding_makes_few_levels() -> None:
    values = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    assert len(np.unique(rounded(values, 16))) == 17


@pytest.mark.parametrize("steps", [0, -1])
def test_a_step_count_below_one_is_an_error(steps: int) -> None:
    with pytest.raises(TransformError, match=f"num_steps must be 1 or more, not {steps}"):
        transform(Graph(), f"round_weights(num_steps={steps})")
