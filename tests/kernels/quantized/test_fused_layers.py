"""Ops that TensorFlow 2 computes with oneDNN, and its uniformly quantized ones, against TensorFlow, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.cases import Case, cases, run
from pocketgraph.errors import RunError
from pocketgraph.graph.dtype import QINT8, QINT32, QUINT8
from pocketgraph.kernels import evaluate

F32 = np.float32
ONE, NONE = F32(1), F32(0)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.node.name) for case in cases("fused_codes")])
def test_an_op_gives_what_tensorflow_gives(case: Case) -> None:
    results = evaluate(case.node, case.inputs)
    assert len(results) == len(case.expected)
    for actual, expected in zip(results, case.expected, strict=True):
        assert np.asarray(actual).dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


IMAGE, WEIGHTS = np.ones((1, 3, 3, 2), np.uint8), np.ones((2, 2, 2, 4), np.int8)
HOW: dict[str, Any] = {"strides": (1, 1, 1, 1), "padding": "SAME"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: np.ones((1, 3, 3, 5), np.uint8)}, "shapes that do not fit"),
        ({2: np.ones(3, F32)}, "a bias of shape"),
        ({4: F32("nan")}, "must be finite numbers"),
        ({3: F32("-inf")}, "must be finite numbers"),
        ({6: np.full(4, np.inf, F32), 5: np.zeros(4, F32)}, "must be finite numbers"),
        ({5: np.zeros(4, F32)}, "as many lower as upper ends"),
        ({5: np.zeros(3, F32), 6: np.ones(3, F32)}, "3 ranges of weights for 4 outputs"),
        ({5: np.zeros(0, F32), 6: np.zeros(0, F32)}, "as many lower as upper ends"),
    ],
)
def test_a_convolution_whose_parts_do_not_fit_is_refused(change: dict[int, Any], message: str) -> None:
    inputs = [IMAGE, WEIGHTS, np.zeros(4, F32), NONE, ONE, -ONE, ONE, NONE, ONE]
    for place, value in change.items():
        inputs[place] = value
    with pytest.raises(RunError, match=message):
        run("QuantizedConv2DWithBiasAndReluAndRequantize", inputs, out_type=QUINT8, **HOW)


def test_a_wanted_range_of_no_width_gives_codes_and_no_fault() -> None:
    inputs = [IMAGE, WEIGHTS, np.zeros(4, F32), NONE, ONE, -ONE, ONE, NONE, NONE]
    codes, low, high = run("QuantizedConv2DWithBiasAndReluAndRequantize", inputs, out_type=QUINT8, **HOW)
    assert (set(codes.ravel().tolist()), float(low), float(high)) == ({255}, 0.0, 0.0)


def test_a_convolution_over_nothing_gives_nothing() -> None:
    inputs = [IMAGE[:0], WEIGHTS, NONE, ONE, np.full(4, -ONE), np.full(4, ONE)]
    codes, low, high = run("QuantizedConv2DPerChannel", inputs, out_type=QINT32, **HOW)
    assert (codes.shape, codes.dtype, low.shape, high.shape) == ((0, 3, 3, 4), np.int32, (4,), (4,))


def test_a_product_that_would_have_to_be_turned_is_refused() -> None:
    inputs = [np.ones((2, 3), np.uint8), np.ones((3, 4), np.int8), np.zeros(4, F32), NONE, ONE, -ONE, ONE]
    with pytest.raises(RunError, match="does not transpose"):
        run("QuantizedMatMulWithBias", inputs, transpose_a=True)
    inputs[2] = np.zeros(3, F32)
    with pytest.raises(RunError, match="shapes that do not fit"):
        run("QuantizedMatMulWithBias", inputs)


LIMITS: dict[str, Any] = {"quantization_min_val": -128, "quantization_max_val": 127}


@pytest.mark.parametrize(
    ("scales", "zeros", "axis", "message"),
    [
        (F32(0), 0, -1, "must be all positive"),
        (F32("nan"), 0, -1, "must be all positive"),
        (np.ones(3, F32), np.zeros(3, np.int32), -1, r"must have the shape \[\]"),
        (np.ones(3, F32), np.zeros(3, np.int32), 0, r"must have the shape \[2\]"),
        (np.ones(3, F32), np.zeros(2, np.int32), 1, r"must have the shape \[3\]"),
        (ONE, 0, 2, "must be -1 or an axis"),
    ],
)
def test_scales_that_do_not_go_with_the_tensor_are_refused(scales: Any, zeros: Any, axis: int, message: str) -> None:
    inputs = [np.ones((2, 3), F32), scales, np.asarray(zeros, np.int32)]
    with pytest.raises(RunError, match=message):
        run("UniformQuantize", inputs, Tout=QINT8, quantization_axis=axis, **LIMITS)


def test_what_is_empty_or_constant_has_codes() -> None:
    weights, zero = np.full((3, 2), 5, np.int8), np.int32(0)
    empty = run("UniformQuantizedDotHybrid", [np.zeros((0, 3), F32), weights, ONE, zero])[0]
    assert empty.shape == (0, 2)
    constant = run("UniformQuantizedDotHybrid", [np.zeros((2, 3), F32), weights, ONE, zero])[0]
    np.testing.assert_array_equal(constant, np.zeros((2, 2), F32))


def test_dimension_numbers_that_name_an_axis_twice_are_refused() -> None:
    inputs = [np.ones((1, 2, 4, 4), F32), np.ones((3, 2, 2, 2), np.int8), ONE, np.int32(0)]
    with pytest.raises(RunError, match="do not name each of 4 axes once"):
        run("UniformQuantizedConvolutionHybrid", inputs, padding="SAME", dimension_numbers=b"\x08\x00\x10\x00")
    with pytest.raises(RunError, match="no padding is called 'FULL'"):
        run("UniformQuantizedConvolutionHybrid", inputs, padding="FULL")
    with pytest.raises(RunError, match="groups that do not fit"):
        run("UniformQuantizedConvolutionHybrid", inputs, padding="SAME", feature_group_count=2)
