"""Channels become even across layers: exactly, with room in front of a RELU6, unasked where they are far from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.channels.cross_layer_equalization import CLIPPED, equalize_across_layers
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions, silent
from pocketgraph.quantization.core.step_limits import LEAST_EQUALIZATION_GAIN_DB, RELU6_ROOM
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.pipeline import quantize_program
from quantize_nets import float_program, judged

STRENGTH = np.array([0.02, 0.3, 1.0, 2.5], np.float32)  # the largest value of each channel, for inputs up to 1


def clipped() -> Program:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 4, 4, 4])
        c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
        r = Relu6(c, T=float)
        y = Conv2D(r, v, T=float, strides=[1, 1, 1, 1], padding="VALID")
    """)
    rng = np.random.default_rng(2)
    constants = [
        const("w", np.diag(STRENGTH).reshape(1, 1, 4, 4)),
        const("v", np.sign(rng.normal(size=(1, 1, 4, 3))).astype(np.float32) / STRENGTH[:, None]),
    ]
    return float_program(Graph([*graph, *constants]).replace(inputs=["x"], outputs=["y"]), ["y"])


def inputs(largest: float) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(1)
    given = rng.uniform(0, largest, (12, 1, 4, 4, 4)).astype(np.float32)
    given[0, 0, 0, 0] = largest
    return [[x] for x in given]


@pytest.mark.parametrize(("times", "is_same"), [(1.0, True), (RELU6_ROOM, True), (1.3 * RELU6_ROOM, False)])
def test_values_twice_as_large_as_those_seen_are_not_clipped(times: float, is_same: bool) -> None:
    program = clipped()
    seen = observe(program, lambda: iter(inputs(1.0)), 12, silent, 1)
    even, count = equalize_across_layers(program, seen)
    assert count == 1
    exact, changed = ProgramRunner(program), ProgramRunner(even)
    differences = [np.abs(exact(x)[0] - changed(x)[0]).max() for x in inputs(times)]
    assert (max(differences) < 1e-3) == is_same


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_few_samples_do_not_bring_channels_nearer_to_where_a_relu6_clips(count: int) -> None:
    """Channels that are weak in them were clipped in all others: of a MobileNet v2 in float 15 dB were left."""
    program = clipped()
    seen = observe(program, lambda: iter(inputs(0.1)[:count]), count, silent, 1)
    even, _ = equalize_across_layers(program, seen)
    exact, changed = ProgramRunner(program), ProgramRunner(even)
    for x in inputs(1.0):
        np.testing.assert_allclose(changed(x)[0], exact(x)[0], atol=1e-5)


def test_no_channel_comes_nearer_to_the_end_than_that() -> None:
    program = clipped()
    seen = observe(program, lambda: iter(inputs(1.0)), 12, silent, 1)
    even, _ = equalize_across_layers(program, seen)
    inner = even.operations[0].outputs[0]
    (values,) = ProgramRunner(even, [inner])(inputs(1.0)[0])
    assert values.max() <= CLIPPED / RELU6_ROOM * 1.001
    np.testing.assert_allclose(values[0, 0, 0], CLIPPED / RELU6_ROOM, rtol=1e-3)


def far_from_even(spread: float) -> Program:
    """Layers between which the channels' strength goes over powers of ten, undone by the next layer's weights."""
    rng = np.random.default_rng(3)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 8, 8, 8])
        c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        r = Relu(c, T=float)
        d = DepthwiseConv2dNative(r, e, T=float, strides=[1, 1, 1, 1], padding="SAME")
        s = Relu(d, T=float)
        p = Conv2D(s, v, T=float, strides=[1, 1, 1, 1], padding="SAME")
        y = Relu(p, T=float)
    """)
    first, second = (10 ** rng.uniform(-spread, spread, 16) for _ in range(2))
    constants = {
        "w": rng.normal(size=(3, 3, 8, 16)) * first,
        "e": rng.normal(size=(3, 3, 16, 1)) * (second / first)[:, None],
        "v": rng.normal(size=(1, 1, 16, 12)) / second[:, None],
    }
    weights = [const(name, value.astype(np.float32)) for name, value in constants.items()]
    return float_program(Graph([*graph, *weights]).replace(inputs=["x"], outputs=["y"]), ["y"])


def samples(count: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(4)
    return [[rng.normal(size=(1, 8, 8, 8)).astype(np.float32)] for _ in range(count)]


@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_strength_that_the_next_weights_undo_costs_nothing(activations: str) -> None:
    program = far_from_even(1.7)
    options = QuantizationOptions(activations=activations, float_share=0.0, widen=0.0)
    without = replace(options, without=("cross_layer_equalization",))
    uneven, even = (
        judged(program, quantize_program(program, lambda: iter(samples(16)), 16, o).converted.program, samples(24)[16:])
        for o in (without, options)
    )
    assert even.snr > 28
    assert even.snr > uneven.snr + 10


def test_usual_channels_stay_as_they_are_unless_asked_for() -> None:
    program = far_from_even(0.2)
    seen = observe(program, lambda: iter(samples(12)), 12, silent, 1)
    assert equalize_across_layers(program, seen)[1] == 2
    assert equalize_across_layers(program, seen, LEAST_EQUALIZATION_GAIN_DB)[1] == 0
    program = far_from_even(1.7)
    seen = observe(program, lambda: iter(samples(12)), 12, silent, 1)
    assert equalize_across_layers(program, seen, LEAST_EQUALIZATION_GAIN_DB)[1] == 2


def test_a_single_weak_channel_among_dead_ones_changes_nothing_unasked() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 8, 8, 8])
        c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        r = Relu6(c, T=float)
        y = DepthwiseConv2dNative(r, e, T=float, strides=[1, 1, 1, 1], padding="SAME")
    """)
    rng = np.random.default_rng(5)
    strength = np.repeat([0, 0.002, 1], [7, 1, 8])  # as MobileNet v1's first layers leave half of their channels
    constants = {"w": rng.normal(size=(3, 3, 8, 16)) * strength, "e": rng.normal(size=(3, 3, 16, 1))}
    weights = [const(name, value.astype(np.float32)) for name, value in constants.items()]
    program = float_program(Graph([*graph, *weights]).replace(inputs=["x"], outputs=["y"]), ["y"])
    seen = observe(program, lambda: iter(samples(12)), 12, silent, 1)
    assert equalize_across_layers(program, seen)[1] == 1
    assert equalize_across_layers(program, seen, LEAST_EQUALIZATION_GAIN_DB)[1] == 0
