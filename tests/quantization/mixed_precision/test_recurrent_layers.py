"""Loops' steps are found, and a quantized loop stays near the float one."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.mixed_precision.recurrent_layers import recurrent
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.runtime.comparison.answer_metrics import Comparison
from quantize_nets import float_program

STEPS, INPUTS, STATE = 6, 12, 32
RECURRENT = pathlib.Path(__file__).parents[2] / "runtime" / "recurrent"


def unrolled() -> Program:
    """h' = tanh(W [x_t, h] + b) for each row of x, then a layer of its own."""
    rng = np.random.default_rng(0)
    lines = [f"x = Placeholder(dtype=float, shape=[1,{STEPS},{INPUTS}])"]
    before = "zeros"
    constants = [
        const("zeros", np.zeros((1, STATE), np.float32)),
        const("axis", np.int32(1)),
        const("w", rng.normal(0, 0.15, (INPUTS + STATE, STATE)).astype(np.float32)),
        const("b", rng.normal(0, 0.1, STATE).astype(np.float32)),
        const("wo", rng.normal(0, 0.5, (STATE, 7)).astype(np.float32)),
    ]
    for step in range(STEPS):
        constants += [const(f"at{step}", np.array([0, step, 0], np.int32))]
        constants += [const(f"to{step}", np.array([1, step + 1, INPUTS], np.int32))]
        lines += [
            f"x{step} = StridedSlice(x, at{step}, to{step}, by, T=float, Index=int32, shrink_axis_mask=2)",
            f"j{step} = ConcatV2(x{step}, {before}, axis, T=float, N=2, Tidx=int32)",
            f"m{step} = MatMul(j{step}, w, T=float)",
            f"a{step} = BiasAdd(m{step}, b, T=float)",
            f"h{step} = Tanh(a{step}, T=float)",
        ]
        before = f"h{step}"
    constants.append(const("by", np.ones(3, np.int32)))
    lines.append(f"y = MatMul({before}, wo, T=float)")
    return float_program(Graph([*parse("\n".join(lines)), *constants]), ["y"])


def samples(count: int = 30, seed: int = 1) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [[rng.normal(0, 1, (1, STEPS, INPUTS)).astype(np.float32)] for _ in range(count)]


def test_steps_and_what_is_between_them_are_found() -> None:
    program = unrolled()
    layers, between = recurrent(program)
    assert len(layers) == STEPS
    assert sum(operation.code == "TANH" for operation in between) == STEPS
    last = program.operations[-1]
    assert last.code == "FULLY_CONNECTED"
    assert last not in layers


def test_layers_that_do_not_depend_on_each_other_are_no_loop() -> None:
    """Two towers with the same weights, as in a network that compares two pictures."""
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,12])
        z = Placeholder(dtype=float, shape=[1,12])
        a = MatMul(x, w, T=float)
        b = MatMul(z, w, T=float)
        y = Sub(a, b, T=float)
    """)
    program = float_program(Graph([*graph, const("w", rng.normal(0, 1, (12, 5)).astype(np.float32))]), ["y"])
    assert recurrent(program) == ([], [])


def test_a_quantized_loop_stays_near_the_float_one() -> None:
    program = unrolled()
    outcome = quantize_program(program, lambda: iter(samples()), 30, QuantizationOptions(float_share=0))
    assert any("steps of a loop" in note for note in outcome.notes)
    comparison = Comparison()
    exact, coded = ProgramRunner(program), ProgramRunner(outcome.converted.program)
    for sample in samples(60, 2):
        comparison.add(exact(sample)[0], coded(sample)[0])
    assert comparison.snr > 28
    kernels = {
        v for o in outcome.converted.program.operations if o.code == "FULLY_CONNECTED" for v in o.inputs[1:2] if v
    }
    assert len(kernels) == 2  # the steps share theirs
    assert all(kernel.dtype.name == "int8" for kernel in kernels)


def test_codes_in_and_out_leave_nothing_in_float() -> None:
    program = unrolled()
    outcome = quantize_program(program, lambda: iter(samples()), 30, QuantizationOptions(float_share=0, io="int8"))
    assert not outcome.hybrid


@pytest.mark.parametrize("name", ["functional_lstm", "functional_gru", "functional_two_ways"])
def test_loops_that_are_functions_are_written_out(name: str) -> None:
    """As TensorFlow 2 freezes Keras' recurrent layers; the goldens are TensorFlow's results."""
    golden = np.load(RECURRENT / f"{name}.npz")
    program = float_program(graph_file(RECURRENT, name))
    assert "WHILE" not in {operation.code for operation in program.operations}
    (given,) = ProgramRunner(program)([golden["in_0_x:0"]])
    np.testing.assert_allclose(given, golden["out_0_Identity:0"], atol=1e-5)
    rows = [[row.reshape(1, 6, 3)] for row in np.random.default_rng(0).normal(size=(24, 6, 3)).astype(np.float32)]
    outcome = quantize_program(program, lambda: iter(rows), len(rows), QuantizationOptions())
    comparison = Comparison()
    exact, coded = ProgramRunner(program), ProgramRunner(outcome.converted.program)
    for row in rows:
        comparison.add(exact.numbers(row)[0], coded.numbers(row)[0])
    assert comparison.snr > 30
