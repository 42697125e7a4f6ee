"""Kernels on int8 codes beside LiteRT: every code is equal."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from c_programs import coded, known, library_of, needs_cc, program, results, results_by_level
from pocketgraph.exporting.c.library import LackingOperatorsError
from pocketgraph.formats import load
from pocketgraph.graph.dtype import FLOAT, INT8, INT32
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.pipeline import quantize_program
from quantize_nets import float_program
from support import golden, model_dir, needs_shared

pytestmark = pytest.mark.usefixtures("optimizing_compiler")

SLIDE = {"stride_w": 2, "stride_h": 2, "dilation_w": 1, "dilation_h": 1}


def weights(rng: Any, shape: tuple[int, ...], axis: int, step: float) -> tuple[Value, Value]:
    """Weights with a step for each channel, and a bias for them."""
    count = shape[axis]
    steps = tuple(float(np.float32(one)) for one in rng.uniform(0.001, 0.02, count))
    codes = rng.integers(-127, 128, shape).astype(np.int8)
    bias = rng.integers(-5000, 5000, count).astype(np.int32)
    of_bias = tuple(float(np.float32(step * one)) for one in steps)
    zeros = (0,) * count
    return known(codes, INT8, Quantization(steps, zeros, axis)), known(bias, INT32, Quantization(of_bias, zeros))


def operations(rng: Any) -> tuple[list[Operation], list[Value]]:
    """One operation of each kind, on three tensors."""
    a, b = float(np.float32(0.043)), float(np.float32(0.021))
    x, y = coded("x", (1, 9, 11, 20), a, -17), coded("y", (1, 9, 11, 20), b, 33)
    real = Value("real", FLOAT, (4, 30))
    rows = coded("rows", (6, 50), a, 5)
    made: list[Operation] = []

    def add(code: str, inputs: list[Value | None], shape: tuple[int, ...], step: float, zero: int, **how: Any) -> None:
        made.append(Operation(code, inputs, [coded(f"{code}{len(made)}", shape, step, zero)], how))

    for activation in ("", "RELU", "RELU6"):
        kernel, bias = weights(rng, (37, 3, 3, 20), 0, a)
        add("CONV_2D", [x, kernel, bias], (1, 5, 6, 37), 0.2, 7, padding="SAME", activation=activation, **SLIDE)
        for code, step in (("ADD", 0.06), ("SUB", 0.05), ("MUL", 0.1)):
            add(code, [x, y], x.shape, step, -9, activation=activation)
    few = coded("few", (1, 8, 8, 3), a, 4)
    kernel, bias = weights(rng, (10, 3, 3, 3), 0, a)
    add("CONV_2D", [few, kernel, bias], (1, 4, 4, 10), 0.1, 7, padding="SAME", activation="", **SLIDE)
    kernel, bias = weights(rng, (24, 50), 0, a)
    add("FULLY_CONNECTED", [rows, kernel, bias], (6, 24), 0.2, 0, activation="")
    for size, times in ((3, 1), (5, 1), (3, 2)):
        kernel, bias = weights(rng, (1, size, size, 20 * times), 3, a)
        shape = (1, 5, 6, 20 * times)
        add("DEPTHWISE_CONV_2D", [x, kernel, bias], shape, 0.1, 7, padding="SAME", activation="RELU6",
            multiplier=times, **SLIDE)  # fmt: skip
    kernel, bias = weights(rng, (6, 3, 3, 20), 0, a)
    size = known(np.array([1, 18, 22, 6], np.int32), INT32)
    add("TRANSPOSE_CONV", [size, kernel, x, bias], (1, 18, 22, 6), 0.2, 3, padding="SAME", activation="", stride_w=2,
        stride_h=2)  # fmt: skip
    window = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "filter_w": 3, "filter_h": 3, "activation": ""}
    for code in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        add(code, [x], (1, 5, 6, 20), a, -17, **window)
    larger = known(np.array([20, 15], np.int32), INT32)
    for corners, centers in ((False, False), (True, False), (False, True)):
        add("RESIZE_BILINEAR", [x, larger], (1, 20, 15, 20), a, -17, align_corners=corners, half_pixel_centers=centers)
    for code, axes, shape, step in (("MEAN", [1, 2], (1, 20), 0.01), ("MEAN", [3], (1, 9, 11), 0.02),
                                    ("SUM", [1, 2], (1, 20), 0.4)):  # fmt: skip
        add(code, [x, known(np.array(axes, np.int32), INT32)], shape, step, 3, keep_dims=False)
    for left, right, to, zero in (
        (x, y, 0.1, -128),
        (y, x, 0.4, 3),
        (x, known(np.array([17], np.int8), INT8, Quantization((0.2,), (5,))), 2.0, -90),
    ):
        add("SQUARED_DIFFERENCE", [left, right], x.shape, to, zero)
    means = coded("means", (1, 9, 11, 1), a, 40)
    add("SQUARED_DIFFERENCE", [y, means], x.shape, 0.3, -128)
    slopes = known(rng.integers(-128, 128, (1, 1, 20)).astype(np.int8), INT8, Quantization((0.01,), (3,)))
    add("PRELU", [x, slopes], x.shape, 0.05, 11)
    left, right = coded("left", (2, 7, 12), a, 3), coded("right", (2, 12, 9), b, -8)
    add("BATCH_MATMUL", [left, right], (2, 7, 9), 0.1, 5, adj_x=False, adj_y=False)
    balanced = coded("balanced", (2, 12, 900), b, 0)
    add("BATCH_MATMUL", [left, balanced], (2, 7, 900), 0.1, 5, adj_x=False, adj_y=False)
    add("SOFTMAX", [rows], rows.shape, 1 / 256, -128, beta=1.0)
    add("LOG_SOFTMAX", [rows], rows.shape, 16 / 256, 127)
    add("LOG_SOFTMAX", [x], x.shape, 16 / 256, 127)
    add("LOGISTIC", [x], x.shape, 1 / 256, -128)
    add("TANH", [x], x.shape, 1 / 128, 0)
    add("LEAKY_RELU", [x], x.shape, 0.03, 8, alpha=0.2)
    add("QUANTIZE", [x], x.shape, 0.03, 8)
    add("QUANTIZE", [real], real.shape, 0.03, 8)
    made.append(Operation("DEQUANTIZE", [x], [Value("numbers", FLOAT, x.shape)]))
    return made, [x, y, real, rows, few, means, left, right, balanced]


@needs_cc
def test_every_code_is_that_of_litert_at_each_level(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(23)
    made, inputs = operations(rng)
    arrays = [
        rng.integers(-128, 128, value.shape).astype(np.int8)
        if value.dtype is INT8
        else rng.normal(0, 2, value.shape).astype(np.float32)
        for value in inputs
    ]
    by_level = results_by_level(program(made, inputs), arrays, tmp_path)
    for place, operation in enumerate(made):
        used = [number for number, value in enumerate(inputs) if value in operation.inputs]
        alone = program([operation], [inputs[number] for number in used])
        (wanted,) = ProgramRunner(alone)([arrays[number] for number in used])
        for level, given in by_level.items():
            where = f"{operation.code} {operation.options} with {level}"
            np.testing.assert_array_equal(given[place], wanted, err_msg=where)


@needs_cc
@needs_shared
@pytest.mark.parametrize(
    ("name", "file"), [("mobilenet_v1_025_128", "frozen_graph.pb"), ("fsrcnn_small_x4", "FSRCNN-small_x4.pb")]
)
def test_a_quantized_model_gives_every_code_that_it_gives_in_litert(
    name: str, file: str, tmp_path: pathlib.Path
) -> None:
    feeds, wanted = golden(model_dir(name))
    exact = float_program(load(model_dir(name) / file), list(wanted), {key: a.shape for key, a in feeds.items()})
    rng = np.random.default_rng(2)
    samples = [[a * rng.uniform(0.5, 1, a.shape).astype(a.dtype) for a in feeds.values()] for _ in range(3)]
    options = QuantizationOptions(rounding="nearest", io="int8", float_share=0.0)
    quantized: Program = quantize_program(exact, lambda: iter(samples), len(samples), options).converted.program
    arrays = as_fed(samples[0], quantized.inputs)
    for right, array in zip(ProgramRunner(quantized)(arrays), results(quantized, arrays, tmp_path), strict=True):
        np.testing.assert_array_equal(array, right)


@needs_cc
def test_codes_of_kernels_smaller_than_their_stride_are_those_of_litert(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(4)
    a = float(np.float32(0.05))
    made, inputs = [], []
    for count, kernel, padding in (
        (20, (1, 2), "SAME"),
        (7, (3, 2), "SAME"),
        (9, (2, 3), "SAME"),
        (9, (1, 2), "VALID"),
    ):
        x = coded(f"x{len(made)}", (2, 9, 40, 3), a, 3)
        filters, bias = weights(rng, (count, *kernel, 3), 0, a)
        shape = (2, 27, 120, count) if padding == "SAME" else (2, 24 + kernel[0], 117 + kernel[1], count)
        options = {"padding": padding, "stride_w": 3, "stride_h": 3, "activation": "RELU" if count == 7 else ""}
        size = known(np.array(shape, np.int32), INT32)
        result = coded(f"y{len(made)}", shape, 0.3, 1)
        made.append(Operation("TRANSPOSE_CONV", [size, filters, x, bias], [result], options))
        inputs.append(x)
    arrays = [rng.integers(-128, 128, x.shape).astype(np.int8) for x in inputs]
    for given, operation, x, array in zip(
        results(program(made, inputs), arrays, tmp_path), made, inputs, arrays, strict=True
    ):
        (wanted,) = ProgramRunner(program([operation], [x]))([array])
        np.testing.assert_array_equal(given, wanted, err_msg=str(operation.options))


def test_operators_on_codes_that_are_lacking_are_all_named() -> None:
    x = coded("x", (1, 4), 0.1, 0)
    made = [Operation(code, [x, x], [coded(code.lower(), (1, 4), 0.1, 0)]) for code in ("DIV", "POW")]
    with pytest.raises(LackingOperatorsError) as caught:
        library_of(program(made, [x]))
    assert list(caught.value.reasons) == ["div", "pow"]


@pytest.mark.parametrize("code", ["SQRT", "RSQRT"])
def test_codes_below_zero_of_what_has_no_roots_are_said_to_be_lacking(code: str) -> None:
    x = coded("x", (1, 4), 0.1, 0)
    with pytest.raises(LackingOperatorsError, match=f"{code} of codes that also stand for numbers it does not take"):
        library_of(program([Operation(code, [x], [coded("root", (1, 4), 0.1, -128)])], [x]))
    x = coded("x", (1, 4), 0.1, -128)
    library_of(program([Operation("SQRT", [x], [coded("root", (1, 4), 0.1, -128)])], [x]))
