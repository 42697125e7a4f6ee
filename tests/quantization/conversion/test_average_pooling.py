"""Averages over windows: in float between codes, as a mean where a window holds everything, in codes where asked."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation, Program
from pocketgraph.quantization.conversion.average_pooling import average_pool_of_codes
from pocketgraph.quantization.conversion.int8_conversion import convert
from pocketgraph.quantization.core.conversion_recipe import ConversionRecipe
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.value_range import Range, quantized
from quantize_nets import float_program

SHAPE = (1, 6, 5, 4)
SPAN = Range(-1.0, 2.0)


def pooled(window: tuple[int, int], padding: str, stride: int = 1) -> Program:
    height, width = window
    graph: Graph = parse(f"""
        x = Placeholder(dtype=float, shape={list(SHAPE)})
        a = Relu6(x, T=float)
        y = AvgPool(a, T=float, ksize=[1, {height}, {width}, 1], strides=[1, {stride}, {stride}, 1],
                    padding="{padding}")
    """)
    return float_program(graph.replace(inputs=["x"], outputs=["y"]), ["y"])


def recipe(program: Program, io: str = "float", bits: int = 8) -> ConversionRecipe:
    values = [*program.inputs, *(v for operation in program.operations for v in operation.outputs)]
    return ConversionRecipe(dict.fromkeys(values, SPAN), io=io, bits=bits)


def average(data: np.ndarray, window: tuple[int, int], padding: str, stride: int) -> np.ndarray:
    """The average of what of each window lies within the picture, in float64."""
    _, rows, columns, _ = data.shape
    places = []
    for size, count in zip(window, (rows, columns), strict=True):
        results = -(-count // stride) if padding == "SAME" else (count - size) // stride + 1
        before = max((results - 1) * stride + size - count, 0) // 2 if padding == "SAME" else 0
        starts = [index * stride - before for index in range(results)]
        places.append([(max(start, 0), min(start + size, count)) for start in starts])
    cells = [[data[0, a:b, c:d].mean(axis=(0, 1)) for c, d in places[1]] for a, b in places[0]]
    return np.array(cells)[None]


CASES = [
    ((3, 3), "SAME", 1), ((3, 3), "SAME", 2), ((2, 3), "VALID", 1), ((6, 5), "VALID", 1), ((9, 7), "SAME", 8),
]  # fmt: skip


@pytest.mark.parametrize("io", ["float", "int8"])
@pytest.mark.parametrize(("window", "padding", "stride"), CASES)
def test_an_average_is_within_a_step_of_the_true_one(
    window: tuple[int, int], padding: str, stride: int, io: str
) -> None:
    program = pooled(window, padding, stride)
    converted = convert(program, recipe(program, io)).program
    data = np.random.default_rng(1).uniform(-1, 2, SHAPE).astype(np.float32)
    quantization = SPAN.quantization()
    given = quantized(data, quantization) if io == "int8" else data
    got = ProgramRunner(converted).numbers([given])[0]
    rounded = (quantized(data, quantization).astype(np.float64) - quantization.zero_points[0]) * quantization.scales[0]
    wanted = average(np.maximum(rounded, 0), window, padding, stride)
    assert np.abs(got - wanted).max() <= 0.51 * quantization.scales[0] + 1e-6


def only_pool(program: Program) -> Operation:
    return next(o for o in program.operations if o.code == "AVERAGE_POOL_2D")


def test_windows_are_averaged_in_float_and_everything_in_codes() -> None:
    some, everything = pooled((3, 3), "SAME"), pooled((6, 5), "VALID")
    pool = only_pool(convert(some, recipe(some)).program)
    assert pool.inputs[0] is not None
    assert pool.inputs[0].dtype.name == pool.outputs[0].dtype.name == "float"
    mean = next(o for o in convert(everything, recipe(everything)).program.operations if o.code == "MEAN")
    assert mean.inputs[0] is not None
    assert mean.inputs[0].dtype.name == mean.outputs[0].dtype.name == "int8"


def test_int8_in_and_out_and_int16_leave_no_float_in_between() -> None:
    program = pooled((3, 3), "SAME")
    for settings in (recipe(program, "int8"), recipe(program, "float", 16)):
        pool = only_pool(convert(program, settings).program)
        assert pool.outputs[0].dtype.name in ("int8", "int16")


def test_a_clipped_average_of_everything_is_no_mean() -> None:
    program = pooled((6, 5), "VALID")
    pool = only_pool(program)
    pool.options["activation"] = "RELU6"
    source = pool.inputs[0]
    assert source is not None
    assert average_pool_of_codes(pool, source, pool.outputs[0], only_codes=True) is None
