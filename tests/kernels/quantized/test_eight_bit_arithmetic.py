"""The eight-bit ops against TensorFlow, bit for bit, on random ranges and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.cases import Case, cases, run
from pocketgraph.errors import RunError
from pocketgraph.graph.dtype import QINT8, QINT16, QUINT8, QUINT16
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    BYTE,
    WIDE,
    byte_codes,
    from_codes,
    quantized,
    to_codes,
    used_range,
)

LAST_PLACE = {"QuantizedInstanceNorm": (1, 2), "FakeQuantWithMinMaxVarsPerChannelGradient": (1, 2)}
"""Outputs that may differ in the last place: TensorFlow takes a reciprocal root from the processor's estimate, and sums
columns in an order that depends on the build."""


def assert_same(case: Case, index: int, actual: Any, expected: np.ndarray[Any, Any]) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if index in LAST_PLACE.get(case.node.op, ()):
        np.testing.assert_allclose(actual, expected, rtol=4e-7, atol=2e-6 * float(np.abs(case.inputs[0]).max()))
    else:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.node.name) for case in cases("eight_bit")])
def test_an_eight_bit_op_gives_what_tensorflow_gives(case: Case) -> None:
    results = evaluate(case.node, case.inputs)
    assert len(results) == len(case.expected)
    for index, (actual, expected) in enumerate(zip(results, case.expected, strict=True)):
        assert_same(case, index, actual, expected)


def test_tensorflow_1_15_gives_the_same_but_for_simulated_quantization() -> None:
    """There, the lower end is added to the value, where now the zero point is taken from the code."""
    different = list(cases("eight_bit_1_15"))
    assert different
    for case in different:
        results = evaluate(case.node, case.inputs)
        if not case.node.op.startswith("FakeQuant"):  # zeros of another sign
            for actual, expected in zip(results, case.expected, strict=True):
                np.testing.assert_array_equal(actual, expected)
            continue
        (actual,) = results
        (expected,) = case.expected
        bits = int(case.node.attr("num_bits", 8))
        limits = case.inputs[1:] or (case.node.attrs["min"], case.node.attrs["max"])
        step = float(np.max(np.asarray(limits[1]) - np.asarray(limits[0]))) / (2**bits - 2)
        assert np.abs(actual - expected).max() <= step * 1.001  # what lies between two steps may go either way


F32 = np.float32
NAN, INF = F32("nan"), F32("inf")
X = np.linspace(-1, 1, 7, dtype=F32)
BYTES = np.arange(4, dtype=np.uint8)


@pytest.mark.parametrize("limits", [(NAN, F32(1)), (F32(0), NAN), (F32(0), INF), (-INF, F32(0)), (F32(2), F32(1))])
@pytest.mark.parametrize("mode", ["MIN_FIRST", "MIN_COMBINED", "SCALED"])
def test_a_range_that_is_none_is_refused(limits: tuple[Any, Any], mode: str) -> None:
    with pytest.raises(RunError, match=r"input_max_range must be larger|must be finite"):
        run("QuantizeV2", [X, *limits], T=QUINT8, mode=mode)


@pytest.mark.parametrize(("kind", "codes"), [(QUINT8, [0, 0, 51, 255, 255]), (QINT8, [-128, -128, -77, 127, 127])])
def test_values_beyond_all_numbers_get_the_code_of_the_end_that_they_are_behind(kind: Any, codes: list[int]) -> None:
    """Codes as TensorFlow 1.15 and 2.21 give them."""
    values = np.array([-np.inf, -3e38, -1, 3e38, np.inf], np.float32)
    found, _, _ = run("QuantizeV2", [values, np.float32(-2), np.float32(3)], T=kind, mode="MIN_FIRST")
    assert found.tolist() == codes


def test_a_range_of_no_width_that_may_stay_so_gives_the_lowest_code() -> None:
    codes, low, high = run("QuantizeV2", [X, F32(0), F32(0)], T=QINT16, mode="MIN_COMBINED", ensure_minimum_range=0.0)
    assert (set(codes.tolist()), float(low), float(high)) == ({-32768}, 0.0, 0.0)


def test_ends_of_a_range_that_are_hardly_a_number_are_zero() -> None:
    """As TensorFlow 2.21 has it; values below then get the code 0 and not 1, with which the narrow range begins."""
    codes, low, high = run("QuantizeV2", [X, F32(-1), F32(-1)], T=QUINT16, mode="SCALED", narrow_range=True)
    assert codes.tolist() == [0, 0, 0, 0, 65535, 65535, 65535]
    assert (float(low), float(high)) == (0.0, float(F32(1.9259007e-34)))


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 2, 4)])
def test_ranges_of_channels_that_are_not_there_are_refused(shape: tuple[int, ...]) -> None:
    codes, ends = np.zeros(shape, np.int32), np.ones(3, F32)
    with pytest.raises(RunError, match="one range for each channel"):
        run("RequantizationRangePerChannel", [codes, -ends, ends], clip_value_max=6.0)
    with pytest.raises(RunError, match="one range for each channel"):
        run("RequantizePerChannel", [codes, -ends, ends, F32(-1), F32(1)], out_type=QUINT8)
    with pytest.raises(RunError, match="an empty tensor has no range"):
        run("RequantizationRangePerChannel", [np.zeros((0, 1, 1, 3), np.int32), -ends, ends], clip_value_max=6.0)


def test_a_range_of_no_width_is_widened() -> None:
    """2…2 becomes 0…2, and 0…0 as wide as a hundredth (TensorFlow 2.21)."""
    codes, low, high = run("QuantizeV2", [F32([2, 1]), F32(2), F32(2)], T=QUINT8, mode="MIN_FIRST")
    assert (codes.tolist(), float(low), float(high)) == ([255, 128], 0.0, 2.0)
    codes, low, high = run("QuantizeV2", [F32([0, 0]), F32(0), F32(0)], T=QUINT8, mode="MIN_FIRST")
    assert (codes.tolist(), float(low), float(high)) == ([0, 0], 0.0, float(F32(0.01)))


def test_what_is_empty_stays_empty() -> None:
    empty = np.zeros((0, 3), F32)
    codes, *_ = run("QuantizeV2", [empty, F32(-1), F32(1)], T=QUINT8)
    assert codes.shape == (0, 3)
    assert run("Dequantize", [codes, F32(-1), F32(1)])[0].shape == (0, 3)
    wide = np.zeros(0, np.int32)
    low, high = run("RequantizationRange", [wide, F32(-1), F32(1)])
    assert (float(low), float(high)) == (0.0, float(from_codes(-(2**31), -1.0, 1.0, WIDE)))
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
        assert run(op, [empty, F32(0), F32(1)], range_given=False)[0].shape == (0, 3)
    assert run("Requantize", [wide, F32(-1), F32(1), F32(0), F32(1)], out_type=QUINT8)[0].shape == (0,)


def test_constant_activations_survive() -> None:
    low, high = used_range(np.full(5, 7, np.int32), -100.0, 100.0)
    assert low == 0.0
    assert 0 < high < 1e-6


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "words"),
    [
        ("QuantizeV2", [X, F32(0), F32(1)], {"T": QUINT8, "mode": "FIRST"}, "Mode string must be"),
        ("QuantizeV2", [X, F32(0), F32(1)], {"T": QUINT8, "round_mode": "UP"}, "Round mode string must be"),
        ("QuantizeV2", [X, F32(0), F32(1)], {"T": QUINT8, "round_mode": "HALF_TO_EVEN"}, "only supported for mode"),
        ("QuantizeV2", [X, F32([0]), F32([1])], {"T": QUINT8, "axis": 0}, "ranges of shape"),
        ("QuantizeAndDequantizeV2", [X, F32(1), F32(0)], {"range_given": True}, "input_min > input_max"),
        ("FakeQuantWithMinMaxArgs", [X], {"min": 1.0, "max": 1.0}, "min has to be smaller than max"),
        ("FakeQuantWithMinMaxVars", [X, F32(0), F32(1)], {"num_bits": 17}, "num_bits must be between 2 and 16"),
        ("Requantize", [np.zeros(2, np.int32), F32(-1), F32(1), F32(0.5), F32(1)], {}, "must be <= 0"),
        ("QuantizedMatMul", [np.zeros((2, 2), np.uint8)] * 2 + [F32(1), F32(1), F32(0), F32(1)], {}, "max_a must be"),
        ("QuantizedMul", [BYTES, BYTES, F32(0), NAN, F32(0), F32(1)], {}, "max_x must be larger"),
        ("QuantizedAdd", [BYTES, BYTES, F32(0), F32(1), F32(2), F32(1)], {}, "max_y must be larger"),
        ("QuantizedAdd", [BYTES[:0], BYTES, F32(0), F32(1), F32(0), F32(1)], {}, "Must have some elements"),
        ("QuantizedInstanceNorm", [BYTES.reshape(1, 2, 2, 1), F32(1), F32(1)], {}, "max_x must be larger"),
        (
            "QuantizeV2",
            [X, np.zeros(7, F32), np.ones(7, F32)],
            {"T": QUINT8, "mode": "MIN_FIRST", "axis": 0},
            "several",
        ),
        ("Dequantize", [BYTES, np.zeros(4, F32), np.ones(4, F32)], {"mode": "MIN_FIRST", "axis": 0}, "several"),
        ("QuantizeAndDequantizeV2", [X, F32(0), NAN], {"range_given": True}, "input_min > input_max"),
    ],
)
def test_wrong_calls_are_refused(op: str, inputs: list[Any], attrs: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=words):
        run(op, inputs, **attrs)


WIDE_CODES = np.array([-5, 7, 1 << 20], np.int32)
IMAGE = np.arange(8, dtype=np.uint8).reshape(1, 2, 2, 2)
COMPUTES = {
    "QuantizedConv2D": ([IMAGE, BYTES.reshape(1, 1, 2, 2)], {"strides": (1, 1, 1, 1), "padding": "SAME"}),
    "QuantizedMatMul": ([BYTES.reshape(2, 2)] * 2, {}),
    "QuantizedMul": ([BYTES, BYTES], {}),
    "QuantizedAdd": ([BYTES, BYTES], {}),
    "QuantizedBiasAdd": ([BYTES, BYTES], {}),
    "QuantizedRelu": ([BYTES], {}),
    "QuantizedRelu6": ([BYTES], {}),
    "QuantizedInstanceNorm": ([IMAGE], {}),
    "Requantize": ([WIDE_CODES], {}),
    "RequantizationRange": ([WIDE_CODES], {}),
    "QuantizeDownAndShrinkRange": ([WIDE_CODES], {}),
}
"""Ops that compute codes or a range with the ranges of their operands: the operands, and the attributes."""
PAIRS = {
    "Requantize": 2,
    "QuantizedConv2D": 2,
    "QuantizedMatMul": 2,
    "QuantizedMul": 2,
    "QuantizedAdd": 2,
    "QuantizedBiasAdd": 2,
}
NO_RANGES = [
    (NAN, NAN),
    (NAN, F32(1)),
    (F32(-1), NAN),
    (-INF, INF),
    (F32(0), INF),
    (-INF, F32(0)),
    (F32(-3e38), F32(3e38)),
]


@pytest.mark.parametrize("limits", NO_RANGES, ids=str)
@pytest.mark.parametrize("op", COMPUTES)
def test_no_codes_are_computed_with_a_range_that_is_none(op: str, limits: tuple[Any, Any]) -> None:
    """TensorFlow's versions turn these into codes that mean nothing, and not the same ones."""
    operands, attrs = COMPUTES[op]
    count = PAIRS.get(op, 1)
    for bad in range(count):
        ranges = [end for index in range(count) for end in (limits if index == bad else (F32(-1), F32(1)))]
        with pytest.raises(RunError, match=r"finite numbers|wider than a float32|must be larger") as refusal:
            run(op, [*operands, *ranges], **attrs)
        assert "Python" not in str(refusal.value)


def test_no_range_among_those_of_a_join_or_a_batch_norm() -> None:
    with pytest.raises(RunError, match="finite numbers"):
        run("QuantizedConcat", [np.int32(0), BYTES, BYTES, F32(0), F32(0), F32(1), NAN], N=2)
    ranges = [F32(0), F32(1)]
    given = [IMAGE, *ranges, *([BYTES[:2], *ranges] * 3), BYTES[:2], F32(0), INF]
    with pytest.raises(RunError, match="finite numbers"):
        run("QuantizedBatchNormWithGlobalNormalization", given, variance_epsilon=1e-3, scale_after_normalization=True)
    codes, ends = np.zeros((1, 1, 1, 2), np.int32), np.array([1, np.nan], F32)
    with pytest.raises(RunError, match="finite numbers"):
        run("RequantizationRangePerChannel", [codes, -ends, ends], clip_value_max=6.0)
    with pytest.raises(RunError, match="finite numbers"):
        run("RequantizePerChannel", [codes, -ends, ends, F32(-1), F32(1)], out_type=QUINT8)


@pytest.mark.parametrize("limits", [*NO_RANGES, (F32(1), F32(-1))], ids=str)
def test_what_only_hands_a_range_on_does_so_whatever_it_is(limits: tuple[Any, Any]) -> None:
    """As both versions of TensorFlow do; codes from such a range become NaN, as there."""
    window = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    results = [
        run("QuantizedMaxPool", [IMAGE, *limits], **window),
        run("QuantizedAvgPool", [IMAGE, *limits], **window),
        run("QuantizedReshape", [IMAGE, np.array([8]), *limits]),
        run("QuantizedResizeBilinear", [IMAGE, np.array([1, 1]), *limits]),
    ]
    for _, low, high in results:
        np.testing.assert_array_equal([float(low), float(high)], limits)
    if np.isnan(limits).any():
        assert np.isnan(run("Dequantize", [BYTES, *limits], mode="MIN_FIRST")[0]).all()


@pytest.mark.parametrize(
    ("given", "wanted", "codes", "expected"),
    [
        ((-17.414791107177734, 6.760067208233522e-06), (-7.725440502166748, 1.4206100185099046e-10),
         [1939578115, 1925975400, -1542371276, -1054708873], [227, 225, 0, 0]),
        ((-0.629992663860321, 1.3229317708447745e26), (-2.823010947721855e18, 4.153688042956038e26),
         [284716347, 1398898787, 1123656379, 818099054], [46, 67, 62, 56]),
        ((-1e30, 1e30), (-0.0013984492979943752, 0.00019482435891404748), [826411835, -1115681418], [224, 224]),
        ((0.0, 1e-30), (-0.004829163197427988, 0.0016670454060658813), [-186943560, -24816249], [190, 190]),
        ((-1e-40, 1e-40), (-1.0, 1.0), [5, -5], [128, 128]),
        ((1.0, -1.0), (-1.0, 1.0), [1 << 30, -(1 << 30)], [64, 191]),
    ],
)  # fmt: skip
def test_narrow_wide_and_reversed_ranges_give_what_tensorflow_gives(
    given: tuple[float, float], wanted: tuple[float, float], codes: list[int], expected: list[int]
) -> None:
    """Numbers of TensorFlow 2.21, the same in 1.15.5."""
    ranges = [F32(end) for end in (*given, *wanted)]
    found, low, high = run("Requantize", [np.array(codes, np.int32), *ranges])
    assert found.tolist() == expected
    assert (low, high) == (ranges[2], ranges[3])


def test_weights_are_coded_as_single_numbers_are() -> None:
    values = np.random.default_rng(0).normal(0, 3, 40_000).astype(F32)
    low, high = float(values.min()), float(values.max())
    expected = np.clip(to_codes(values, low, high, BYTE), 0, 255)
    np.testing.assert_array_equal(byte_codes(values, low, high), expected)


def test_quantized_and_back_is_within_half_a_step() -> None:
    values = np.random.default_rng(0).uniform(-1, 2, 1000).astype(F32)
    codes, low, high = quantized(values, -1.0, 2.0, BYTE, "MIN_FIRST")
    assert np.abs(from_codes(codes, low, high, BYTE) - values).max() <= 0.51 * 3 / 255


def test_print_writes_the_lines_of_the_original(capfd: pytest.CaptureFixture[str]) -> None:
    """The line is TensorFlow's for these values."""
    tensors = [
        F32([1.5, -2.25, 1e-7, 3e10, 0.1]), F32(-0.5), np.array([[1, 2, 3], [4, 5, 6]]),
        np.array([b"a b", b"c\n"], object), np.array([True, False]), np.zeros(0, F32), F32(123456.789), F32("nan"),
        np.float64(0.1), F32([[[1, 2], [3, 4]]]), np.array([0, 255], np.uint8),
    ]  # fmt: skip
    (result,) = run("Print", [F32(7), *tensors], message="msg;", summarize=3)
    assert result == 7
    assert capfd.readouterr().err == (
        "msg;[1.5 -2.25 1e-07...][-0.5][[1 2 3]...][a b c\\n][1 0][][123456.789][nan][0.1][[[1 2][3...]]...][0 255]\n"
    )
