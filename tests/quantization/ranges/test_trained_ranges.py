"""A model of a quantization-aware training gets its ranges, and its fake quantization is not computed in floats."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.ranges.trained_ranges import marked, with_trained_ranges
from quantize_nets import float_program
from support import with_weights

LOW, HIGH = -2.04, 3.06  # steps of 0.02


def trained(ending: str = "y = MatMul(q, b, T=float)", source: str = "x") -> Graph:
    rng = np.random.default_rng(0)
    return with_weights(
        f"""
        x = Placeholder(dtype=float, shape=[1,16])
        low = Const(float {LOW})
        high = Const(float {HIGH})
        a = Const(float 0.0)
        b = Const(float 0.0)
        p = FakeQuantWithMinMaxVars({source}, low, high, num_bits=8)
        h = MatMul(p, a, T=float)
        r = Relu6(h, T=float)
        six = Const(float 6.0)
        zero = Const(float 0.0)
        q = FakeQuantWithMinMaxVars(r, zero, six, num_bits=8)
        {ending}
        """,
        a=rng.normal(size=(16, 32)).astype(np.float32),
        b=rng.normal(size=(32, 4)).astype(np.float32),
    )


def test_fake_quantization_becomes_ranges() -> None:
    program = float_program(marked(trained()), ["y"])
    plain, ranges = with_trained_ranges(program)
    assert {operation.code for operation in program.operations} == {"QUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED"}
    assert [operation.code for operation in plain.operations] == ["FULLY_CONNECTED", "FULLY_CONNECTED"]
    found = {value.name: (round(span.low, 4), round(span.high, 4)) for value, span in ranges.items()}
    assert found == {"x:0": (LOW, HIGH), "q:0": (0.0, 6.0)}


def test_a_result_that_is_rounded_keeps_its_name() -> None:
    plain, ranges = with_trained_ranges(float_program(marked(trained("y = Identity(q, T=float)")), ["q"]))
    assert [value.name for value in plain.outputs] == ["q:0"]
    assert plain.outputs[0] in ranges


def test_a_value_that_is_rounded_twice_is_read_by_both() -> None:
    graph = trained("""
        other = FakeQuantWithMinMaxVars(r, zero, high, num_bits=8)
        t = Add(q, other, T=float)
        y = MatMul(t, b, T=float)
    """)
    plain, _ = with_trained_ranges(float_program(marked(graph), ["y"]))
    total = next(operation for operation in plain.operations if operation.code == "ADD")
    assert total.inputs[0] is total.inputs[1]
    made = {value for operation in plain.operations for value in operation.outputs}
    assert all(value in made for value in total.inputs)


@pytest.mark.parametrize("attrs", ["num_bits=8, narrow_range=true", "num_bits=4"])
def test_other_codes_are_left(attrs: str) -> None:
    graph = trained(f"y = FakeQuantWithMinMaxVars(q, zero, high, {attrs})")
    assert [node.name for node in marked(graph) if "_eight_bit" in node.attrs] == ["p", "q"]


@pytest.mark.parametrize("reach", [1.9, 4.0])
def test_an_eight_bit_file_computes_what_the_training_did(reach: float) -> None:
    graph = trained()
    rng = np.random.default_rng(1)
    samples = rng.uniform(-reach, reach, (24, 16)).astype(np.float32)  # 4 is beyond the trained range
    made = pocketgraph.quantize(graph, samples, outputs=["y"], float_share=0.0, rounding="nearest")
    codes = [operation.code for operation in made.program.operations]
    assert "FLOOR" not in codes
    assert codes.count("FULLY_CONNECTED") == 2
    assert codes.count("QUANTIZE") == 1  # values beyond the trained range are cut off by the codes that are read
    taken = next(value for operation in made.program.operations for value in operation.outputs if value.quantization)
    assert taken.quantization is not None
    assert taken.quantization.scales == pytest.approx((0.02,), rel=1e-5)
    assert made.judged is not None
    assert made.judged.comparison.snr > 30


@pytest.mark.parametrize("ending", ["y = MatMul(m, b, T=float)", "s = MatMul(m, b, T=float); y = Softmax(s, T=float)"])
def test_a_result_that_its_trained_range_cuts_off_has_codes_of_that_range(ending: str) -> None:
    """Codes end where the training did; it was rounded to wider ones and, by way of floats, to these."""
    graph = trained(
        """
        end = Const(float 1.5)
        t = FakeQuantWithMinMaxVars(h, zero, end, num_bits=8)
        flat = Const(int32 [1, 32])
        m = Reshape(t, flat, T=float)
        """
        + ending.replace("; ", "\n")
    )
    samples = np.random.default_rng(1).uniform(-2, 3, (24, 16)).astype(np.float32)
    made = pocketgraph.quantize(graph, samples, outputs=["y"], float_share=0.0, rounding="nearest")
    codes = [operation.code for operation in made.program.operations]
    assert codes.count("QUANTIZE") == 1
    assert not {"MINIMUM", "MAXIMUM"} & set(codes)
    first = next(operation for operation in made.program.operations if operation.code == "FULLY_CONNECTED")
    assert first.outputs[0].coding.scales == pytest.approx((1.5 / 255,), rel=1e-6)
    assert made.judged is not None
    assert made.judged.comparison.snr > 30


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_a_range_that_no_training_has_set_gives_zeros(mode: Literal["static", "dynamic"]) -> None:
    """As FakeQuant does whose ends are both 0; there are no codes of such a range."""
    graph = trained("""
        untrained = FakeQuantWithMinMaxVars(h, zero, zero, num_bits=8)
        t = Add(q, untrained, T=float)
        y = MatMul(t, b, T=float)
    """)
    samples = np.random.default_rng(1).uniform(-2, 3, (24, 16)).astype(np.float32)
    made = pocketgraph.quantize(graph, samples, outputs=["y"], mode=mode)
    assert "FULLY_CONNECTED" in {operation.code for operation in made.program.operations}
    given, without = (ProgramRunner(float_program(marked(each), ["y"])) for each in (graph, trained()))
    np.testing.assert_allclose(given([samples[:1]])[0], without([samples[:1]])[0], rtol=1e-5)


@pytest.mark.parametrize("end", [0.0, 1.5])
def test_a_trained_range_of_no_width_is_told(end: float) -> None:
    """What FakeQuant gives then is 0 or no number at all, whatever comes in, and nothing said why."""
    graph = trained(f"""
        end = Const(float {end})
        read = Identity(end, T=float)
        dead = FakeQuantWithMinMaxVars(h, read, end, num_bits=8)
        t = Add(q, dead, T=float)
        y = MatMul(t, b, T=float)
    """)
    samples, told = np.random.default_rng(1).uniform(-2, 3, (24, 16)).astype(np.float32), list[str]()
    pocketgraph.evaluate(graph, samples, outputs=["y"], notify=told.append)
    assert any(f"the trained range of dead ({end:g} to {end:g}) has no width" in line for line in told)
    told.clear()
    pocketgraph.evaluate(trained(), samples, outputs=["y"], notify=told.append)
    assert not any("no width" in line for line in told)


def test_a_layer_that_is_rounded_is_kept_by_the_name_of_its_rounding() -> None:
    samples = np.random.default_rng(1).uniform(-2, 3, (24, 16)).astype(np.float32)
    made = pocketgraph.quantize(trained(), samples, outputs=["y"], keep=["q"], float_share=0.0)
    kept = next(operation for operation in made.program.operations if "h" in operation.nodes)
    assert {value.dtype.name for value in kept.inputs if value is not None} == {"float"}
