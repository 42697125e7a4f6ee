"""Copied channels leave what is computed as it is, and halve the noise of eight bits."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.channels.channel_replication import (
    ChannelChain,
    Replication,
    chains,
    replicate_channels,
)
from pocketgraph.quantization.core.conversion_recipe import ConversionRecipe, quantized_operations
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.step_limits import int8_effort
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.mixed_precision.sensitivity import decibels, measure_sensitivity
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.runtime.comparison.answer_metrics import Comparison
from quantize_nets import float_program

SIDE, NARROW, IDLE = 24, 8, 3
NOTHING = 1e-12  # of noise: never quiet enough


def net(idle: int = IDLE, bias: float = -0.5, padding: str = "SAME", wide: int = 32) -> Graph:
    """A narrow first layer, of which some channels only give their bias, a depthwise one, and a wide one.

    What counts are small differences between large numbers, as in the first layers of a trained network.
    """
    rng = np.random.default_rng(0)
    first = rng.normal(0, 0.1, (3, 3, 3, NARROW)).astype(np.float32)
    first[..., :idle] *= 1e-9
    shift = rng.normal(3, 0.2, NARROW).astype(np.float32)
    shift[:idle] = bias
    mixed = rng.normal(0, 0.5, (1, 1, NARROW, wide))
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,{SIDE},{SIDE},3])
        c1 = Conv2D(x, w1, strides=[1,1,1,1], padding="SAME", T=float)
        b1 = BiasAdd(c1, v1, T=float)
        narrow = Relu6(b1, T=float)
        dw = DepthwiseConv2dNative(narrow, w2, strides=[1,1,1,1], padding="{padding}", T=float)
        b2 = BiasAdd(dw, v2, T=float)
        r2 = Relu6(b2, T=float)
        y = Conv2D(r2, w3, strides=[1,1,1,1], padding="VALID", T=float)
    """)
    extra = [
        const("w1", first),
        const("v1", shift),
        const("w2", rng.normal(1 / 9, 0.02, (3, 3, NARROW, 1)).astype(np.float32)),
        const("v2", rng.normal(0.2, 0.2, NARROW).astype(np.float32)),
        const("w3", (mixed - mixed.mean(axis=2, keepdims=True)).astype(np.float32)),
    ]
    return Graph([*graph, *extra])


def samples(count: int = 32, seed: int = 1) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [[rng.uniform(-1, 1, (1, SIDE, SIDE, 3)).astype(np.float32)] for _ in range(count)]


def ranges_of(program: Program) -> dict[Value, Range]:
    return {v: o.range for v, o in observe(program, lambda: iter(samples()), 32, silent, 1).items()}


def chain_of(program: Program) -> ChannelChain:
    ranges = ranges_of(program)
    (found,) = chains(program, quantized_operations(program, ConversionRecipe(ranges)), ranges)
    return found


def staggered(program: Program, most: float) -> Replication:
    ranges = ranges_of(program)
    coded = quantized_operations(program, ConversionRecipe(ranges))
    state = QuantizationState(program, lambda: iter(samples()), 32, QuantizationOptions(), ranges=ranges)
    measure_sensitivity(state)
    return replicate_channels(program, coded, ranges, state.sensitivity, NOTHING, most)


def judged(a: Program, b: Program) -> Comparison:
    comparison = Comparison()
    first, second = ProgramRunner(a), ProgramRunner(b)
    for sample in samples(40, 2):
        comparison.add(first.numbers(sample)[0], second.numbers(sample)[0])
    return comparison


def test_a_channel_without_weights_is_constant() -> None:
    chain = chain_of(float_program(net(), ["y"]))
    assert chain.idle.tolist() == [True] * IDLE + [False] * (NARROW - IDLE)
    assert chain.live == NARROW - IDLE


def test_a_constant_other_than_zero_is_none_at_a_padded_border() -> None:
    assert not chain_of(float_program(net(bias=0.5), ["y"])).idle.any()
    assert chain_of(float_program(net(bias=0.5, padding="VALID"), ["y"])).idle.sum() == IDLE


def test_a_channel_that_is_zero_only_for_the_samples_is_not_taken_for_constant() -> None:
    """Weights are small, but with every value at the end of its range they reach over the bias."""
    program = float_program(net(), ["y"])
    ranges = ranges_of(program)
    ranges[program.inputs[0]] = Range(-1e9, 1e9)
    (chain,) = chains(program, quantized_operations(program, ConversionRecipe(ranges)), ranges)
    assert not chain.idle.any()


@pytest.mark.parametrize(("bias", "padding"), [(-0.5, "SAME"), (0.5, "VALID"), (0.5, "SAME")])
@pytest.mark.parametrize("most", [0.0, 1.0])
def test_the_same_is_computed(bias: float, padding: str, most: float) -> None:
    program = float_program(net(bias=bias, padding=padding), ["y"])
    found = staggered(program, most)
    assert bool(found.sources) == (most > 0 or (bias, padding) != (0.5, "SAME"))
    assert judged(program, found.program).largest < 1e-4


def test_idle_channels_make_room_without_more_work() -> None:
    program = float_program(net(), ["y"])
    found = staggered(program, 0.0)
    assert [value.shape[-1] for value in found.sources] == [NARROW, NARROW]
    assert found.added == 0
    for _, source in found.sources.values():
        assert set(source.tolist()) == set(range(IDLE, NARROW))
    assert "made room" in found.note()


def test_more_work_than_allowed_is_not_added() -> None:
    program = float_program(net(idle=0), ["y"])
    plain = sum(int8_effort(operation) for operation in program.operations)
    for most in (0.0, 0.05, 0.2, 1.0):
        found = staggered(program, most)
        added = sum(int8_effort(operation) for operation in found.program.operations) / plain - 1
        assert added <= most
        assert added == pytest.approx(found.added)
    assert found.sources


def test_steps_are_evenly_staggered_around_none() -> None:
    found = staggered(float_program(net(), ["y"]), 1.0)
    for value, shift in found.shifts.items():
        _, source = found.sources[value]
        for channel in set(source.tolist()):
            own = np.sort(shift[source == channel])
            assert own.mean() == pytest.approx(0)
            np.testing.assert_allclose(np.diff(own), 1 / len(own))


def test_quiet_programs_stay_as_they_are() -> None:
    program = float_program(net(), ["y"])
    ranges = ranges_of(program)
    coded = quantized_operations(program, ConversionRecipe(ranges))
    found = replicate_channels(program, coded, ranges, {program.operations[0].outputs[0]: 1e-6}, 1e-3, 1.0)
    assert found.program.operations == program.operations
    assert not found.shifts


def test_noise_falls_by_several_decibels() -> None:
    program = float_program(net(idle=4), ["y"])
    options = QuantizationOptions(float_share=0, quiet=200)
    noise = {}
    for widen in (0.0, 1.0):
        outcome = quantize_program(program, lambda: iter(samples()), 32, dataclasses.replace(options, widen=widen))
        noise[widen] = judged(program, outcome.converted.program).snr
    plain = quantize_program(program, lambda: iter(samples()), 32, dataclasses.replace(options, quiet=-100))
    assert not any("staggered" in note for note in plain.notes)
    before = judged(program, plain.converted.program).snr
    assert noise[0.0] > before + 2, (before, noise)
    assert noise[1.0] > before + 4, (before, noise)


def test_what_is_known_of_tensors_follows_them() -> None:
    program = float_program(net(idle=4), ["y"])
    outcome = quantize_program(program, lambda: iter(samples()), 32, QuantizationOptions(quiet=200))
    for operation in outcome.program.operations:
        for value in operation.outputs:
            seen = outcome.seen[value]
            assert seen.samples == 32
            assert seen.channel_low is None or len(seen.channel_low) == value.shape[-1]
    assert decibels(sum(outcome.sensitivity.values())) > 0


def test_shared_weights_and_outputs_are_left_alone() -> None:
    graph = net()
    program = float_program(graph, ["y", "narrow"])
    ranges = ranges_of(program)
    assert not chains(program, quantized_operations(program, ConversionRecipe(ranges)), ranges)


def test_copies_go_where_they_spare_most() -> None:
    chain = ChannelChain((0, 1), np.zeros(3, bool), np.zeros(3), np.array([100.0, 1.0, 1.0]))
    assert chain.copies(3).tolist() == [1, 1, 1]
    assert chain.copies(6).tolist() == [4, 1, 1]
    for width, wider in itertools.pairwise(range(3, 12)):
        assert chain.left(wider) < chain.left(width)


def test_effort_counts_channels_by_the_blocks_that_are_computed_and_each_number_that_comes_out() -> None:
    """Times of XNNPACK's layers on 62 x 62 places: 27 us for 32 channels from one by 3 x 3, 51 us for 64."""

    def layer(inputs: int, outputs: int) -> Operation:
        program = float_program(
            Graph(
                [
                    *parse(f"""
        x = Placeholder(dtype=float, shape=[1,64,64,{inputs}])
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="VALID", data_format="NHWC")
    """),
                    const("w", np.ones((3, 3, inputs, outputs), np.float32)),
                ]
            ),
            ["y"],
        )
        return next(operation for operation in program.operations if operation.code == "CONV_2D")

    assert int8_effort(layer(1, 64)) == 2 * int8_effort(layer(1, 32))
    assert int8_effort(layer(1, 8)) == int8_effort(layer(1, 16))
    assert int8_effort(layer(1, 16)) == int8_effort(layer(8, 16))
    assert 1.5 < int8_effort(layer(16, 16)) / int8_effort(layer(8, 16)) < 2
