"""Ranges and the codes for them, and how a range is chosen."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pocketgraph
from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.model_file import ModelFile
from pocketgraph.quantization.core.observation import BLOCK, WHOLE, Observation
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.value_range import Range, dequantized, quantized
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.ranges.range_selection import CHOICES, choose, percentile
from quantize_nets import float_program, judged, net, samples

finite = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@settings(max_examples=60, deadline=None)
@given(finite, finite)
def test_zero_has_a_code_and_no_value_is_off_by_more_than_a_step(a: float, b: float) -> None:
    span = Range(min(a, b), max(a, b))
    quantization = span.quantization()
    assert -128 <= quantization.zero_points[0] <= 127
    assert dequantized(quantized(np.zeros(1), quantization), quantization)[0] == 0
    values = np.linspace(span.low, span.high, 50)
    apart = np.abs(dequantized(quantized(values, quantization), quantization) - values)
    assert apart.max() <= quantization.scales[0] * 1.01


def test_values_outside_of_the_range_get_the_codes_of_its_ends() -> None:
    quantization = Range(0, 6).quantization()
    assert quantized(np.array([-1.0, 0, 2.99, 6, 99]), quantization).tolist() == [-128, -128, -1, 127, 127]


@pytest.mark.parametrize("ends", [(np.nan, 1), (0, np.inf), (-np.inf, 0), (2, 1)])
def test_a_range_that_is_none_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(UsageError):
        Range(*ends)


@pytest.mark.parametrize("value", [0.0, 3.5, -2.0])
def test_a_constant_tensor_has_a_usable_scale(value: float) -> None:
    quantization = Range(value, value).quantization()
    assert quantization.scales[0] > 0
    back = dequantized(quantized(np.array([value]), quantization), quantization)
    np.testing.assert_allclose(back, value, atol=quantization.scales[0])


def seen(*arrays: np.ndarray) -> Observation:
    observation = Observation("t")
    for array in arrays:
        observation.add(array.astype(np.float32))
    return observation


def test_an_observation_knows_extremes_by_channel_and_counts_everything_as_the_range_grows() -> None:
    found = seen(np.zeros((4, 2)), np.array([[1.0, -2], [3, -4]]), np.array([[100.0, 0], [-50, 0]]))
    assert (found.low, found.high) == (-50, 100)
    assert found.channel_low is not None
    assert found.channel_low.tolist() == [-50, -4]
    assert found.counts.sum() == pytest.approx(8 + 4 + 4)
    near_zero = found.counts[np.abs(found.centres) < 0.5].sum()
    assert near_zero == pytest.approx(10)


def test_extremes_of_large_tensors_are_exact_at_first_and_then_take_two_samples_to_see_all() -> None:
    usual = np.zeros((3 * BLOCK // 2, 2))
    strange = usual.copy()
    strange.reshape(-1)[[3, BLOCK + 3, 2 * BLOCK + 3]] = [-3, 7, 9]
    assert (seen(*[usual] * (WHOLE - 1), strange).low, seen(*[usual] * (WHOLE - 1), strange).high) == (-3, 9)
    found = seen(*[usual] * WHOLE, strange, strange)
    assert (found.low, found.high) == (-3, 9)
    late = [seen(*[usual] * count, strange) for count in (WHOLE, WHOLE + 1)]
    assert {(each.low, each.high) for each in late} == {(-3, 9), (0, 7)}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_observation_refuses_what_is_not_finite_and_says_which_sample(bad: float) -> None:
    with pytest.raises(RunError, match="t: sample 2 gives a value that is not finite"):
        seen(np.ones(3), np.array([1, bad, 2.0]))


def test_an_empty_array_changes_nothing() -> None:
    found = seen(np.ones(3), np.zeros((0, 4)))
    assert (found.samples, found.low, found.high) == (1, 1, 1)


def test_every_choice_stays_within_what_was_seen_and_outliers_are_cut_where_that_pays() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, 100_000)
    values[0] = 400
    found = seen(values)
    for method in (*CHOICES, "auto"):
        span = choose(found, method)
        assert found.low <= span.low <= span.high <= found.high
    assert choose(found, "minmax").high == 400
    assert percentile(found).high < 10
    exact = np.square(
        values
        - dequantized(quantized(values, choose(found, "auto").quantization()), choose(found, "auto").quantization())
    )
    plain = np.square(values - dequantized(quantized(values, found.range.quantization()), found.range.quantization()))
    assert exact[1:].mean() < plain[1:].mean()


def test_an_unknown_choice_is_named_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="did you mean 'minmax'"):
        choose(seen(np.ones(2)), "minimax")


def test_few_samples_keep_every_value() -> None:
    """Unseen values are larger than those of a few samples; cutting some of these off makes it worse."""
    program = float_program(net(), ["y"])
    few = quantize_program(program, lambda: iter(samples(6)), 6, QuantizationOptions(float_share=0, widen=0))
    many = quantize_program(program, lambda: iter(samples(40)), 40, QuantizationOptions(float_share=0, widen=0))
    cut = {found.name: found.range for found in few.seen.values() if found.samples}
    for value, span in few.ranges.items():
        assert span.low <= cut[value.name].low
        assert span.high >= cut[value.name].high
    assert any(many.ranges[value] != many.seen[value].range for value in many.ranges)
    assert judged(program, few.converted.program, samples(20, seed=9)).snr > 25


def squared_error(observed: Observation, span: Range) -> float:
    """As defined, bin by bin."""
    quantization = span.quantization()
    scale, zero = quantization.scales[0], quantization.zero_points[0]
    low, high = (-128 - zero) * scale, (127 - zero) * scale
    outside = np.maximum(low - observed.centres, 0) + np.maximum(observed.centres - high, 0)
    each = np.where(outside > 0, outside**2, scale**2 / 12)
    each[np.abs(observed.centres) <= observed.centres[1] - observed.centres[0]] = 0
    return float((each * observed.counts).sum())


def divergence(observed: Observation, span: Range) -> float:
    """As defined, bin by bin."""
    quantization = span.quantization()
    scale, zero = quantization.scales[0], quantization.zero_points[0]
    centres, full = observed.centres[observed.counts > 0], observed.counts[observed.counts > 0] / observed.counts.sum()
    index = np.clip(np.rint(centres / scale) + zero + 128, 0, 255).astype(np.int64)
    is_inside = (centres >= (-128.5 - zero) * scale) & (centres <= (127.5 - zero) * scale)
    mass = np.bincount(index, weights=full, minlength=256)
    width = np.bincount(index, weights=is_inside.astype(float), minlength=256)
    shown = np.where(is_inside, mass[index] / np.maximum(width[index], 1), 0) + 1e-9
    return float((full * np.log(full / shown)).sum())


@pytest.mark.parametrize(("method", "cost"), [("mse", squared_error), ("entropy", divergence)])
@pytest.mark.parametrize("kind", ["normal", "tails", "relu", "tanh", "above"])
def test_no_range_that_is_tried_costs_less_by_the_definition(
    kind: str, method: str, cost: Callable[[Observation, Range], float]
) -> None:
    rng = np.random.default_rng(len(kind))
    drawn = {
        "normal": rng.normal(size=9000), "tails": rng.standard_t(2, size=9000),
        "tanh": np.tanh(rng.normal(size=9000) * 3),
        "relu": np.maximum(rng.normal(size=9000), 0), "above": rng.normal(40, 3, size=9000),
    }[kind]  # fmt: skip
    observation = seen(*np.split(drawn, 6))
    shares = np.linspace(0.3, 1, 36)
    low, high = float(observation.low), float(observation.high)
    tried = [Range(low * a, high * b) for s in shares for a, b in ((s, s), (1, s), (s, 1)) if low < 0 < high or a == b]
    tried = [Range(max(each.low, low), min(each.high, high)) for each in tried if max(each.low, low) <= each.high]
    least = min(cost(observation, each) for each in tried)
    assert cost(observation, choose(observation, method)) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("how", [{"io": "int8"}, {"activations": "int16"}])
@pytest.mark.parametrize("activation", ["Relu", "Relu6"])
@pytest.mark.parametrize("scale", [1e-7, 1e-9, 1e-12, 1e-15])
def test_small_numbers_have_codes_of_their_own_size(
    tmp_path: pathlib.Path, scale: float, activation: str, how: dict[str, Any]
) -> None:
    """No range was narrower than 1e-6: a tensor of smaller numbers had one code.

    In steps of 2.8e-9 and less LiteRT refuses a bound of 6: "no_integer_overflow_from_quantization was not true".
    """
    rng = np.random.default_rng(3)
    graph = Graph(
        [
            *parse(f"""
            x = Placeholder(dtype=float, shape=[1,16])
            hidden = MatMul(x, first, T=float)
            bent = {activation}(hidden, T=float)
            y = MatMul(bent, second, T=float)
        """),
            const("first", rng.normal(0, 0.4, (16, 32)).astype(np.float32)),
            const("second", rng.normal(0, 0.4, (32, 4)).astype(np.float32)),
        ]
    )
    inputs = (rng.normal(size=(40, 16)) * scale).astype(np.float32)
    pocketgraph.quantize(graph, {"x": inputs}, threads=1, outputs=["y"], **how).save(tmp_path / "small.tflite")
    first, second = (graph.constant(name).numpy().astype(np.float64) for name in ("first", "second"))
    wanted = np.maximum(inputs[:1].astype(np.float64) @ first, 0) @ second
    found = ModelFile(tmp_path / "small.tflite").numbers("serving_default", {"x:0": inputs[:1]})["y:0"]
    np.testing.assert_allclose(found, wanted, atol=0.05 * np.abs(wanted).max())
