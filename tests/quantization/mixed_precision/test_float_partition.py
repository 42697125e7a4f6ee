"""What stays in float between layers because it is faster so."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.operator_rules import can_quantize
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.value_range import dequantized, quantized
from pocketgraph.quantization.mixed_precision.float_partition import faster_in_float
from pocketgraph.quantization.pipeline import quantize_program
from quantize_nets import float_program, judged, net, samples

rng = np.random.default_rng(11)


def attention(rows: int = 16, width: int = 32) -> Graph:
    """One head of attention between layers, and a normalization over the channels."""
    weights = {name: rng.normal(0, width**-0.5, (width, width)).astype(np.float32) for name in ("wq", "wk", "wv", "wo")}
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[{rows}, {width}])
        q = MatMul(x, wq, T=float, transpose_a=false, transpose_b=false)
        k = MatMul(x, wk, T=float, transpose_a=false, transpose_b=false)
        v = MatMul(x, wv, T=float, transpose_a=false, transpose_b=false)
        q3 = ExpandDims(q, zero, T=float, Tdim=int32)
        k3 = ExpandDims(k, zero, T=float, Tdim=int32)
        v3 = ExpandDims(v, zero, T=float, Tdim=int32)
        s = BatchMatMulV2(q3, k3, T=float, adj_x=false, adj_y=true)
        p = Softmax(s, T=float)
        m = BatchMatMulV2(p, v3, T=float, adj_x=false, adj_y=false)
        flat = Squeeze(m, T=float, squeeze_dims=[0])
        o = MatMul(flat, wo, T=float, transpose_a=false, transpose_b=false)
        mean = Mean(o, one, T=float, Tidx=int32, keep_dims=true)
        d = SquaredDifference(o, mean, T=float)
        var = Mean(d, one, T=float, Tidx=int32, keep_dims=true)
        r = Rsqrt(var, T=float)
        c = Sub(o, mean, T=float)
        n = Mul(c, r, T=float)
        z = MatMul(n, wq, T=float, transpose_a=false, transpose_b=false)
        y = Relu(z, T=float)
    """)
    constants = [const(name, values) for name, values in weights.items()]
    constants += [const("zero", np.int32(0)), const("one", np.array([1], np.int32))]
    return Graph([*graph, *constants]).replace(inputs=["x"], outputs=["y"])


def codable(program: Program) -> list[Operation]:
    return [operation for operation in program.operations if can_quantize(operation)]


def test_products_of_tensors_and_normalizations_stay_in_float() -> None:
    program = float_program(attention(), ["y"])
    floats = faster_in_float(program, codable(program))
    assert {"BATCH_MATMUL", "SOFTMAX", "SQUARED_DIFFERENCE"} <= {operation.code for operation in floats}
    assert "FULLY_CONNECTED" not in {operation.code for operation in floats}


def test_what_stays_in_float_computes_as_the_float_program() -> None:
    program = float_program(attention(), ["y"])
    held = [[rng.normal(size=(16, 32)).astype(np.float32)] for _ in range(24)]
    outcome = quantize_program(program, lambda: iter(held), 24, QuantizationOptions())
    made = outcome.converted.program
    by_code = {o.code: [v.dtype.name for v in o.outputs] for o in made.operations}
    assert by_code["BATCH_MATMUL"] == ["float"]
    assert by_code["FULLY_CONNECTED"] != []
    x = [rng.normal(size=(16, 32)).astype(np.float32)]
    (wanted,), (given,) = ProgramRunner(program)(x), ProgramRunner(made).numbers(x)
    assert 10 * np.log10((wanted**2).sum() / ((given - wanted) ** 2).sum()) > 25


def test_a_device_without_float_gets_codes_where_there_are_such() -> None:
    program = float_program(attention(), ["y"])
    held = [[rng.normal(size=(16, 32)).astype(np.float32)] for _ in range(12)]
    outcome = quantize_program(program, lambda: iter(held), 12, QuantizationOptions(io="int8", float_share=0))
    assert all(
        v.dtype.name == "int8"
        for o in outcome.converted.program.operations
        if o.code == "BATCH_MATMUL"
        for v in o.outputs
    )


def test_a_device_with_little_float_converts_no_sum_between_operations_without_codes() -> None:
    """The squares and the root of an L2 normalization are floats anyway, so that their sum is one too."""
    chance = np.random.default_rng(0)
    program = float_program(
        Graph([
            *parse("""
                x = Placeholder(dtype=float, shape=[1,32])
                m = MatMul(x, w, T=float)
                square = Square(m, T=float)
                sum = Sum(square, axis, T=float, Tidx=int32, keep_dims=true)
                least = Maximum(sum, small, T=float)
                root = Rsqrt(least, T=float)
                unit = Mul(m, root, T=float)
                y = MatMul(unit, v, T=float)
            """),
            const("w", chance.normal(size=(32, 16)).astype(np.float32)),
            const("v", chance.normal(size=(16, 8)).astype(np.float32)),
            const("axis", np.int32([1])), const("small", np.float32(1e-12)),
        ]),
        ["y"],
    )  # fmt: skip
    coded = codable(program)
    assert [o.code for o in faster_in_float(program, coded, has_float_ends=False)] == ["SUM", "MAXIMUM"]
    held = [[chance.normal(0, deviation, (1, 32)).astype(np.float32)] for deviation in np.geomspace(0.2, 1, 40)]
    found = []
    for without in ((), ("float_partition",)):
        options = QuantizationOptions(io="int8", float_share=0, without=without)
        made = quantize_program(program, lambda: iter(held), 40, options).converted.program
        assert {value.dtype.name for value in (*made.inputs, *made.outputs)} == {"int8"}
        signal = noise = 0.0
        for (x,) in held:
            (wanted,) = ProgramRunner(program)([x])
            (codes,) = ProgramRunner(made)([quantized(x, made.inputs[0].coding)])
            signal += float((wanted**2).sum())
            noise += float(((dequantized(codes, made.outputs[0].coding) - wanted) ** 2).sum())
        found.append(10 * np.log10(signal / noise))
    assert found[0] > found[1] + 1  # 32.1 and 29.7 dB


def test_a_plain_network_stays_in_codes() -> None:
    program = float_program(net(), ["y"])
    inner = [operation for operation in codable(program) if operation.outputs[0] not in program.outputs]
    assert faster_in_float(program, inner) == []
    outcome = quantize_program(program, lambda: iter(samples(24)), 24, QuantizationOptions())
    assert judged(program, outcome.converted.program, samples(12, seed=8)).snr > 20


def chain(codes: list[str], size: int) -> Program:
    """Operations one after the other, the first and the last of which are layers as far as the cut is concerned."""
    values = [Value(f"v{at}", FLOAT, (1, size)) for at in range(len(codes) + 1)]
    operations = [Operation(code, [values[at]], [values[at + 1]]) for at, code in enumerate(codes)]
    return Program([values[0]], [values[-1]], operations)


@pytest.mark.parametrize("seed", range(8))
def test_the_cut_is_the_least_of_all_ways(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held against every way to choose, with times by chance."""
    chance = np.random.default_rng(seed)
    names = ["RELU", "TANH", "MUL", "ADD", "ELU", "RELU6", "SUB"]
    order = [str(name) for name in chance.permutation(names)]
    monkeypatch.setattr(step_limits, "CODES_NS_OF", {name: (float(chance.uniform(10, 900)), 0.0) for name in names})
    monkeypatch.setattr(step_limits, "FLOAT_NS_OF", {name: (float(chance.uniform(10, 900)), 0.0) for name in names})
    monkeypatch.setattr(step_limits, "FLOAT_ADVANTAGE_SHARE", 1.0)
    monkeypatch.setattr(step_limits, "CONVERSION_NS", (150.0, 0.0))
    program = chain(order, 10)

    def time(in_float: tuple[bool, ...]) -> float:
        spent = sum(
            (step_limits.FLOAT_NS_OF if left else step_limits.CODES_NS_OF)[name][0]
            for name, left in zip(order, in_float, strict=True)
        )
        places = (True, *in_float, True)  # what comes in and goes out is float
        return spent + 150.0 * sum(a != b for a, b in itertools.pairwise(places))

    floats = set(faster_in_float(program, program.operations))
    chosen = time(tuple(operation in floats for operation in program.operations))
    least = min(time(way) for way in itertools.product((False, True), repeat=len(order)))
    assert chosen == pytest.approx(least)
