"""Batch norms in front of layers become layers by channel, what is joined is made even, equal weights are shared."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.canonical.depthwise_affine import with_depthwise_affine
from pocketgraph.quantization.channels.channel_equalization import equalize_channels
from pocketgraph.quantization.conversion.to_graphdef import to_graphdef
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions, silent
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.runtime import Session
from quantize_nets import float_program, judged


def dense_block(spread: float = 30.0, seed: int = 0) -> Graph:
    """Two convolutions, the second one ``spread`` times as strong, joined, and a batch norm before the next."""
    rng = np.random.default_rng(seed)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,12,12,3])
        c1 = Conv2D(x, w1, strides=[1,1,1,1], padding="SAME", T=float)
        m1 = Mul(c1, g1, T=float)
        n1 = AddV2(m1, b1, T=float)
        r1 = Relu(n1, T=float)
        c2 = Conv2D(r1, w2, strides=[1,1,1,1], padding="SAME", T=float)
        both = ConcatV2(c1, c2, axis, T=float, N=2, Tidx=int32)
        m2 = Mul(both, g2, T=float)
        n2 = Sub(m2, b2, T=float)
        r2 = Relu(n2, T=float)
        c3 = Conv2D(r2, w3, strides=[1,1,1,1], padding="VALID", T=float)
        mean = Mean(c3, axes, T=float, Tidx=int32)
        y = Softmax(mean, T=float)
    """)
    usual = np.concatenate([np.full(8, 1.0), np.full(8, spread)])
    extra = [
        const("w1", rng.normal(0, 0.3, (3, 3, 3, 8)).astype(np.float32)),
        const("g1", np.logspace(-1, 1, 8, dtype=np.float32)),
        const("b1", rng.normal(0, 0.5, 8).astype(np.float32)),
        const("w2", (spread * rng.normal(0, 0.1, (3, 3, 8, 8))).astype(np.float32)),
        const("g2", (rng.uniform(0.5, 2, 16) / usual).astype(np.float32)),
        const("b2", rng.normal(0, 0.5, 16).astype(np.float32)),
        const("w3", rng.normal(0, 0.4, (3, 3, 16, 6)).astype(np.float32)),
        const("axis", np.int32(3)),
        const("axes", np.array([1, 2], np.int32)),
    ]
    return Graph([*graph, *extra])


def images(count: int, seed: int = 1) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [[rng.uniform(-1, 1, (1, 12, 12, 3)).astype(np.float32)] for _ in range(count)]


def codes(program: Program) -> list[str]:
    return [operation.code for operation in program.operations]


def test_scaling_and_shift_become_one_layer_that_computes_the_same() -> None:
    program = float_program(dense_block(), ["y"])
    assert codes(program).count("MUL") == 2
    changed = with_depthwise_affine(program)
    assert codes(changed).count("MUL") == 0
    assert codes(changed).count("DEPTHWISE_CONV_2D") == 2
    assert "SUB" not in codes(changed)
    assert codes(program).count("MUL") == 2  # the argument stays as it is
    assert judged(program, changed, images(4)).snr > 100


def test_layers_to_keep_and_preparation_stay_as_they_are() -> None:
    program = float_program(dense_block(), ["y"])
    assert codes(with_depthwise_affine(program, ["m1", "m2"])).count("MUL") == 2
    assert codes(with_depthwise_affine(program, ["n2"])).count("SUB") == 1
    scaled = Graph(
        [
            *parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        m = Mul(x, g, T=float)
        y = Conv2D(m, w, strides=[1,1,1,1], padding="SAME", T=float)
    """),
            const("g", np.array([1, 10, 100], np.float32)),
            const("w", np.random.default_rng(0).normal(0, 1, (3, 3, 3, 16)).astype(np.float32)),
        ]
    )
    plain = float_program(scaled, ["y"])
    assert with_depthwise_affine(plain) is plain


@pytest.mark.parametrize("constant", [np.float32(2), np.ones((12, 1), np.float32), np.array([1, np.inf] * 4, "f4")])
def test_other_products_stay_products(constant: np.ndarray) -> None:
    graph = dense_block()
    program = float_program(graph.replace([const("g1", constant) if n.name == "g1" else n for n in graph]), ["y"])
    assert codes(with_depthwise_affine(program)).count("MUL") == 1


def test_joined_parts_of_unlike_strength_are_made_even_and_nothing_is_computed_otherwise() -> None:
    program = with_depthwise_affine(float_program(dense_block(), ["y"]))
    seen = observe(program, lambda: iter(images(16)), 16, silent, 1)
    result, changed = equalize_channels(program, seen)
    assert {"both:0", "c1:0"} <= {value.name for value in changed}
    assert judged(program, result, images(4, seed=2)).snr > 90
    values = {value.name: value for value in changed}
    joined = ProgramRunner(result, [values["both:0"]])
    strength = np.max([np.abs(joined(sample)[0]).max(axis=(0, 1, 2)) for sample in images(16)], axis=0)
    assert strength.max() / strength.min() < 2.1
    assert equalize_channels(result, observe(result, lambda: iter(images(16)), 16, silent, 1))[1] == []


def test_channels_that_others_read_stay_as_they_are() -> None:
    program = with_depthwise_affine(float_program(dense_block(), ["y", "both"]))
    seen = observe(program, lambda: iter(images(8)), 8, silent, 1)
    assert equalize_channels(program, seen) == (program, [])


def test_a_dense_block_keeps_its_answers_in_eight_bits() -> None:
    program, graph = lowered_graph(dense_block(), ["y"])
    options = QuantizationOptions(float_share=0, widen=0)
    outcome = quantize_program(program, lambda: iter(images(32)), 32, options)
    assert judged(program, outcome.converted.program, images(16, seed=2)).snr > 33
    session, running = (
        Session(to_graphdef(outcome.converted.program, graph, ["y"])),
        ProgramRunner(outcome.converted.program),
    )
    for sample in images(4, seed=3):
        assert np.abs(session.run(["y"], {"x": sample[0]})[0] - running.numbers(sample)[0]).max() < 1e-5


def test_harm_is_measured_with_the_codes_that_joined_tensors_really_get() -> None:
    """The weak part of a joined tensor has the strong part's steps; rounding it is what hurts most."""
    program = float_program(dense_block(spread=300.0), ["y"])
    found = quantize_program(
        program, lambda: iter(images(16)), 16, QuantizationOptions(rounding="nearest", float_share=0, widen=0)
    )
    by_name = {value.name: noise for value, noise in found.sensitivity.items()}
    assert max(by_name, key=lambda name: by_name[name]) == "c1:0"


def test_equal_weights_of_unrolled_steps_are_one_value() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.3, (6, 6)).astype(np.float32)
    lines = ["x = Placeholder(dtype=float, shape=[1,6])", "h0 = Identity(x, T=float)"]
    for i in range(4):
        lines += [f"m{i} = MatMul(h{i}, w{i}, T=float)", f"h{i + 1} = Tanh(m{i}, T=float)"]
    graph = Graph([*parse("\n".join(lines)), *(const(f"w{i}", weights) for i in range(4))])
    program = float_program(graph, ["h4"])
    assert len({operation.inputs[1] for operation in program.operations if operation.code == "FULLY_CONNECTED"}) == 1
