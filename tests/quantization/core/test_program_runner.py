"""Tensors that are looked at where they lie: by several threads where they are large, and freed for the next run."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pocketgraph.graph.dtype import INT4, INT8, INT16
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.accuracy_budget import compare_programs
from pocketgraph.quantization.core import program_runner
from pocketgraph.quantization.core.program_runner import (
    SUMS,
    ProgramRunner,
    Views,
    as_fed,
    look_at,
    with_sums_in_floats,
)
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.pipeline import quantize_program
from quantize_nets import float_program, net, samples


def test_several_threads_look_at_large_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    program, together = float_program(net(), ["y"]), threading.Barrier(2, timeout=300)
    values = [value for operation in program.operations for value in operation.outputs][:2]
    (sample,) = samples(1)
    expected = ProgramRunner(program, values)(sample)
    found: dict[Value, np.ndarray] = {}

    def look(value: Value, views: Views) -> None:
        together.wait()  # two threads are here at once
        found[value] = views[value].copy()

    monkeypatch.setattr(program_runner, "WORTH_THREADS", 1)
    look_at(ProgramRunner(program, values, threads=2).views(sample), look, 2)
    for value, array in zip(values, expected, strict=True):
        assert np.array_equal(found[value], array)


def test_one_thread_looks_at_small_tensors_in_order() -> None:
    program, seen, here = float_program(net(), ["y"]), list[Value](), set[int]()
    values = [*program.inputs, *(value for operation in program.operations for value in operation.outputs)]
    (sample,) = samples(1)

    def look(value: Value, views: Views) -> None:
        assert set(views) == set(values)
        seen.append(value)
        here.add(threading.get_ident())

    look_at(ProgramRunner(program, values, threads=2).views(sample), look, 2)
    assert seen == values
    assert here == {threading.get_ident()}


def test_sums_of_sixteen_bits_in_floats_are_those_of_litert_or_the_next_code() -> None:
    options = QuantizationOptions(activations="int16")
    converted = quantize_program(float_program(net(), ["y"]), lambda: samples(8), 8, options).converted.program
    layers = [operation for operation in converted.operations if operation.code in SUMS]
    assert {operation.code for operation in layers} == {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
    fed = [as_fed(sample, converted.inputs) for sample in samples(4, seed=5)]
    for layer in layers:
        alone = Program([layer.operands[0]], layer.outputs, [layer])
        before = ProgramRunner(converted, alone.inputs)
        quick, exact = ProgramRunner(alone, in_floats=True), ProgramRunner(alone)
        apart = np.stack([np.abs(quick(codes)[0].astype(int) - exact(codes)[0]) for codes in map(before, fed)])
        assert apart.max() <= 1, layer
        assert np.mean(apart) <= 0.1, layer


def test_fitting_goes_without_sums_in_floats_and_judging_is_litert_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step says whether programs are rewritten, and those that judge never are."""
    found: list[Program] = []
    monkeypatch.setattr(program_runner, "with_sums_in_floats", lambda program: found.append(program) or program)
    program, given = float_program(net(), ["y"]), samples(8)
    for without in ((), ("sums_in_floats",)):
        options = QuantizationOptions(activations="int16", without=without)
        outcome = quantize_program(program, lambda: given, 8, options)
        assert outcome.done["sums_in_floats"] == ("left out" if without else "done")
        assert bool(found) != bool(without)
        found.clear()
        compare_programs(outcome, lambda: given, 8, lambda scores: None)
        assert not found


def test_sums_in_floats_share_operands_and_leave_four_bits_alone() -> None:
    codes = Quantization((0.5,), (0,))
    x, y, z, w = (Value(name, INT16, (1, 4), None, codes) for name in "xyzw")
    kernel = Value("k", INT8, (4, 4), Constant.of(np.eye(4, dtype=np.int8)), Quantization((1, 2, 3, 4), (0,) * 4))
    small = Value("s", INT4, (4, 4), Constant.of(np.zeros(8, np.uint8)), Quantization((1,) * 4, (0,) * 4))
    operations = [
        Operation("FULLY_CONNECTED", [x, kernel, None], [y]),
        Operation("FULLY_CONNECTED", [x, kernel, None], [z]),
        Operation("FULLY_CONNECTED", [x, small, None], [w]),
    ]
    plain = Value("p", INT16, (1, 4))
    untouched = Program([plain], [plain], [Operation("BATCH_MATMUL", [plain, plain], [Value("q", INT16, (1, 4))])])
    assert with_sums_in_floats(untouched).operations == untouched.operations
    program = with_sums_in_floats(Program([x], [y, z, w], operations))
    layer, quantize_, dequantize = "FULLY_CONNECTED", "QUANTIZE", "DEQUANTIZE"
    assert [each.code for each in program.operations] == [dequantize, layer, quantize_, layer, quantize_, layer]
    assert program.operations[-1] is operations[-1]
    runner = ProgramRunner(Program([x], [y], operations), in_floats=True)
    assert np.array_equal(runner([np.array([[2, 2, 2, 2]], np.int16)])[0], [[2, 4, 6, 8]])
