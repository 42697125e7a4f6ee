"""Bytes and time beside the float program's, and what is said when there is no gain; smaller files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.report import size_and_latency
from pocketgraph.quantization.report.size_and_latency import SizeAndLatency, measure_size_and_latency
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.quantization.weight_only import quantize_weights, with_quantized_weights
from quantize_nets import float_program, net, samples

rng = np.random.default_rng(3)


def test_a_gain_is_told_without_warnings() -> None:
    (line,) = SizeAndLatency(4000, 1000, 2e-3, 1e-3, 10, 900, 1).lines()
    assert "4,000 bytes in float, 1,000 now (0.25 x)" in line
    assert "2 ms in float, 1 ms now (0.50 x, one thread)" in line


def test_no_gain_is_told_with_the_reason() -> None:
    _, size, time = SizeAndLatency(1000, 1001, 1e-3, 2e-3, 12, 30, 2).lines()
    assert "larger than the float one" in size
    assert "12 operations" in size
    assert "30 weights" in size
    assert "slower" in time


@pytest.mark.parametrize(
    ("size", "seconds", "is_worse", "told"),
    [
        (1000, 1.01e-6, False, 0),
        (1001, 1e-6, True, 1),
        (1001, 7e-7, False, 0),
        (900, 9e-6, False, 0),
        (900, 9e-5, True, 1),
    ],
)
def test_a_report_warns_where_floats_are_the_better_ones(size: int, seconds: float, is_worse: bool, told: int) -> None:
    """As many bytes are no loss, nor are some microseconds, nor bytes that make it much faster."""
    found = SizeAndLatency(1000, size, 1e-6, seconds, 12, 30, 2)
    assert (found.is_worse, len(found.drawbacks())) == (is_worse, told)


def test_sixteen_bits_are_slow_for_a_reason_of_their_own() -> None:
    _, why = SizeAndLatency(4000, 1000, 1e-6, 2e-4, 12, 900, 1, is_wide=True).lines()
    assert "LiteRT computes codes of sixteen bits with plain kernels; activations=int8" in why
    assert "weights" not in why


def test_weights_that_are_expanded_are_not_told_to_become_what_they_are() -> None:
    program = float_program(net(), ["y"])
    whole = quantize_program(program, lambda: iter(samples(12)), 12, QuantizationOptions(rounding="nearest"))
    expanded, coded = (
        measure_size_and_latency(program, made, 1, lambda: iter(()))
        for made in (with_quantized_weights(program, dynamic=False), whole.converted.program)
    )
    (why,) = replace(expanded, seconds=1 + expanded.float_seconds).drawbacks()
    assert why.endswith("though it computes in floats too: time both again where nothing else runs")
    (why,) = replace(coded, seconds=1 + coded.float_seconds).drawbacks()
    assert "mode=weights computes in float" in why


def test_both_programs_are_measured() -> None:
    program = float_program(net(), ["y"])
    outcome = quantize_program(program, lambda: iter(samples(12)), 12, QuantizationOptions(rounding="nearest"))
    size = len(model_bytes(outcome.converted.program))
    found = measure_size_and_latency(program, outcome.converted.program, size, lambda: iter(samples(2)))
    assert (found.float_bytes, found.bytes) == (len(model_bytes(program)), size)
    assert found.seconds > 0
    assert found.float_seconds > 0
    assert found.weights == sum(
        node.attr("value").numpy().size for node in net() if node.name in ("w1", "w2", "w3", "w4")
    )
    without = measure_size_and_latency(program, outcome.converted.program, size, lambda: iter(()))
    assert without.bytes == size


@pytest.mark.parametrize(("each", "turns"), [(0.03, 5), (0.1, 2), (0.06, 3), (30.0, 2)])
def test_a_model_that_takes_long_is_timed_in_fewer_turns(
    each: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, given, now = float_program(net(), ["y"]), list[bool](), 0.0

    def seconds(self: PlainRunner, inputs: Sequence[np.ndarray] | None, enough: float, most: int) -> float:
        nonlocal now
        given.append(inputs is not None)
        now += each
        return each / len(given)

    monkeypatch.setattr(PlainRunner, "seconds", seconds)
    monkeypatch.setattr(size_and_latency.time, "perf_counter", lambda: now)
    found = measure_size_and_latency(program, program, 1, lambda: iter(samples(1)))
    assert given == [True, True] + [False] * 2 * (turns - 1)  # both programs keep what they are fed
    assert (found.float_seconds, found.seconds) == (each / (2 * turns - 1), each / (2 * turns))


def looked_up(rows: int) -> Graph:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[1, 6])
        e = GatherV2(table, x, zero, Tparams=float, Tindices=int32, Taxis=int32, batch_dims=0)
        twice = GatherV2(table, x, zero, Tparams=float, Tindices=int32, Taxis=int32, batch_dims=0)
        both = AddV2(e, twice, T=float)
        m = Mean(both, axis, T=float, Tidx=int32)
        y = MatMul(m, w, T=float, transpose_a=false, transpose_b=false)
    """)
    constants = [
        const("table", rng.normal(size=(rows, 32)).astype(np.float32)),
        const("zero", np.int32(0)),
        const("axis", np.int32(1)),
        const("w", rng.normal(size=(32, 5)).astype(np.float32)),
    ]
    return Graph([*graph, *constants]).replace(inputs=["x"], outputs=["y"])


def indices(count: int) -> list[list[np.ndarray]]:
    chance = np.random.default_rng(8)
    return [[chance.integers(0, 500, (1, 6)).astype(np.int32)] for _ in range(count)]


def decibels(wanted: list[np.ndarray], given: list[np.ndarray]) -> float:
    a, b = np.stack(wanted), np.stack(given)
    return float(10 * np.log10((a**2).sum() / ((a - b) ** 2).sum()))


def test_tables_of_rows_are_in_eight_bits() -> None:
    program = float_program(looked_up(500), ["y"])
    exact = ProgramRunner(program)
    held, others = indices(24), indices(60)[24:]
    whole = quantize_program(program, lambda: iter(held), 24, QuantizationOptions()).converted.program
    light = with_quantized_weights(program, dynamic=True)
    for made in (whole, light):
        assert len(model_bytes(made)) < 0.4 * len(model_bytes(program))
        tables = {o.inputs[0] for o in made.operations if o.code == "GATHER"}
        assert [table.dtype.name for table in tables if table is not None] == ["int8"]
        coded = ProgramRunner(made)
        assert decibels([exact(x)[0] for x in others], [coded.numbers(x)[0] for x in others]) > 30


def test_small_tables_and_those_of_graphs_stay_in_float() -> None:
    small = with_quantized_weights(float_program(looked_up(20), ["y"]), dynamic=False)
    program = float_program(looked_up(500), ["y"])
    graph = quantize_weights(program, lambda: iter(()), 0, dynamic=False, with_tables=False).converted.program
    for made in (small, graph):
        assert all(o.inputs[0].dtype.name == "float" for o in made.operations if o.code == "GATHER" and o.inputs[0])


def test_long_names_of_what_is_inside_are_left_out_of_the_file() -> None:
    long = "a_name_that_says_where_in_the_model_this_is_computed_" * 4
    lines = "\n".join(f"{long}{at} = Relu({'x' if at == 0 else f'{long}{at - 1}'}, T=float)" for at in range(5))
    graph = parse(f"x = Placeholder(dtype=float, shape=[1, 4])\n{lines}\ny = Tanh({long}4, T=float)")
    data = model_bytes(float_program(graph.replace(inputs=["x"], outputs=["y"]), ["y"]))
    assert long.encode() not in data
    assert b"y" in data
    x = rng.normal(size=(1, 4)).astype(np.float32)
    (given,) = ProgramRunner(float_program(graph, ["y"]))([x])
    np.testing.assert_allclose(given, np.tanh(np.maximum(x, 0)), atol=1e-6)
