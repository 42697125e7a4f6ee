"""Eight bits stay eight bits: codes between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_runs import assert_near, assert_same, exported, onnx, operators, reference, run
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import transform
from support import with_weights

DRAWN = np.random.default_rng(3)


def codes_of(proto: object) -> int:
    """The bytes of eight-bit constants."""
    types = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    return sum(len(t.raw_data) for t in proto.graph.initializer if t.data_type in types)  # type: ignore[attr-defined]


def test_weights_of_quantize_weights_stay_codes() -> None:
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        w = Const(float 0.0)
        d = Const(float 0.0)
        m = Const(float 0.0)
        a = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        b = DepthwiseConv2dNative(a, d, T=float, strides=[1,2,2,1], padding="SAME")
        axes = Const(int32 [1, 2])
        c = Mean(b, axes, T=float, Tidx=int32, keep_dims=false)
        y = MatMul(c, m, T=float, transpose_a=false, transpose_b=true)
        """,
        w=DRAWN.normal(size=(3, 3, 3, 16)).astype(np.float32),
        d=DRAWN.normal(size=(3, 3, 16, 2)).astype(np.float32),
        m=DRAWN.normal(size=(40, 32)).astype(np.float32),
    )
    small = transform(graph, "quantize_weights(minimum_size=16)", inputs="x", outputs="y")
    proto = assert_same(small, {"x": DRAWN.normal(size=(2, 8, 8, 3)).astype(np.float32)})
    assert codes_of(proto) >= 3 * 3 * 3 * 16 + 3 * 3 * 16 * 2 + 40 * 32
    assert operators(proto)["Transpose"] == 1  # codes are transposed when the file is written


@pytest.mark.parametrize("narrow", [True, False])
def test_fake_quantization(narrow: bool) -> None:
    graph = with_weights(
        f"""
        x = Placeholder(dtype=float, shape=[?,6,6,2])
        w = Const(float 0.0)
        low = Const(float [-1.0, -2.0, -0.5])
        high = Const(float [1.5, 1.0, 2.0])
        q = FakeQuantWithMinMaxVarsPerChannel(w, low, high, num_bits=8, narrow_range={str(narrow).lower()})
        s = FakeQuantWithMinMaxArgs(x, min=-1.9, max=2.2, num_bits=8, narrow_range={str(narrow).lower()})
        a = Conv2D(s, q, T=float, strides=[1,1,1,1], padding="SAME")
        y = FakeQuantWithMinMaxArgs(a, min=-6.0, max=6.0, num_bits=8)
        """,
        w=DRAWN.normal(size=(3, 3, 2, 3)).astype(np.float32),
    )
    x = DRAWN.uniform(-2, 2, size=(2, 6, 6, 2)).astype(np.float32)
    proto = exported(graph, ["y", "a"])
    (actual, inner), (expected, sums) = run(proto, {"x": x}), reference(graph, {"x": x}, ["y", "a"])
    assert_near(inner, sums)
    step = 12 / 255
    assert np.max(np.abs(actual - expected)) <= step * 1.01  # of two codes that are equally near the other one
    assert np.mean(actual != expected) < 0.01
    assert codes_of(proto) >= 3 * 3 * 2 * 3
    assert operators(proto)["QuantizeLinear"] == 2
    assert operators(proto)["Transpose"] == 3  # at the input, and for the two outputs


def test_weights_that_are_computed_of_constants_and_rounded_stay_codes() -> None:
    """As contrib.quantize leaves them, which folds batch norms. As floats, ONNX Runtime would round them anew."""
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[?,6,6,2])
        w = Const(float 0.0)
        gamma = Const(float [0.5, 2.0, 1.0])
        low = Const(float -3.0)
        high = Const(float 4.0)
        six = Const(float 6.0)
        folded = Mul(w, gamma, T=float)
        q = FakeQuantWithMinMaxVars(folded, low, high, num_bits=8, narrow_range=true)
        s = FakeQuantWithMinMaxVars(x, low, high, num_bits=8)
        a = Conv2D(s, q, T=float, strides=[1,1,1,1], padding="SAME")
        bias = Const(float [0.1, 0.2, -0.3])
        b = BiasAdd(a, bias, T=float)
        y = FakeQuantWithMinMaxVars(b, low, six, num_bits=8)
        """,
        w=DRAWN.normal(size=(3, 3, 2, 3)).astype(np.float32),
    )
    x = DRAWN.uniform(-3, 4, size=(4, 6, 6, 2)).astype(np.float32)
    proto = exported(graph, ["y"])
    (actual,), (expected,) = run(proto, {"x": x}), reference(graph, {"x": x}, ["y"])
    assert codes_of(proto) >= 3 * 3 * 2 * 3
    assert np.mean(actual != expected) < 0.01


def test_other_widths_are_rounded_in_floats() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[50])
        y = FakeQuantWithMinMaxArgs(x, min=-1.0, max=1.0, num_bits=4)
    """
    proto = assert_same(text, {"x": DRAWN.uniform(-2, 2, size=50).astype(np.float32)})
    assert operators(proto)["QuantizeLinear"] == 0


def test_our_own_quantized_graphs() -> None:
    """int8 codes, a Cast and steps for each channel."""
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[?,5,5,2])
        c = Const(int8 0)
        s = Const(float [0.5, 0.25, 0.125])
        f = Cast(c, SrcT=int8, DstT=float)
        w = Mul(f, s, T=float)
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        c=DRAWN.integers(-127, 128, size=(3, 3, 2, 3)).astype(np.int8),
    )
    proto = assert_same(graph, {"x": DRAWN.normal(size=(1, 5, 5, 2)).astype(np.float32)})
    assert operators(proto)["DequantizeLinear"] == 1
    assert operators(proto)["Mul"] == 0


def test_the_originals_eight_bit_ops() -> None:
    """quantize_nodes finds ranges while running, and so does the exported model."""
    drawn = np.random.default_rng(3)  # not DRAWN, of which it depends on the tests before what is left
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        w = Const(float 0.0)
        a = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        b = Relu(a, T=float)
        c = MaxPool(b, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID")
        n = Const(int32 [1, 128])
        y = Reshape(c, n, T=float, Tshape=int32)
        """,
        w=drawn.normal(size=(3, 3, 3, 8)).astype(np.float32),
    )
    coded = transform(graph, "quantize_weights(minimum_size=16) quantize_nodes", inputs="x", outputs="y")
    assert any(node.op == "QuantizedConv2D" for node in coded)
    x = drawn.normal(size=(1, 8, 8, 3)).astype(np.float32)
    proto = exported(coded, ["y"])
    (actual,), (expected,) = run(proto, {"x": x}), reference(coded, {"x": x}, ["y"])
    peak = np.abs(expected).max()
    assert np.max(np.abs(actual - expected)) <= 2.5 * peak / 255  # the original rounds in fixed point
    assert np.mean(np.abs(actual - expected)) <= 0.8 * peak / 255
    assert codes_of(proto) >= 3 * 3 * 3 * 8
    assert operators(proto)["QuantizeLinear"] >= 2


def test_a_product_of_what_is_rounded_with_stored_codes_runs() -> None:
    """``quantize`` writes such graphs; ONNX Runtime fuses their products into kernels without batches of weights."""
    from pocketgraph import quantize

    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[1,6,6,4])
        k = Const(float 0.0)
        c = Conv2D(x, k, T=float, strides=[1,1,1,1], padding="SAME")
        r = Relu(c, T=float)
        s = Const(int32 [-1, 288])
        f = Reshape(r, s, T=float, Tshape=int32)
        m = Const(float 0.0)
        p = MatMul(f, m, T=float, transpose_a=false, transpose_b=false)
        v = Const(float 0.0)
        b = BiasAdd(p, v, T=float)
        y = Softmax(b, T=float)
        """,
        k=DRAWN.normal(0, 0.3, (3, 3, 4, 8)).astype("f4"),
        m=DRAWN.normal(0, 0.1, (288, 12)).astype("f4"),
        v=DRAWN.normal(0, 0.1, 12).astype("f4"),
    )
    x = DRAWN.normal(size=(8, 6, 6, 4)).astype("f4")
    made = quantize(graph, {"x": x}, form="pb").graph
    feeds = {"x": x[:1]}
    (found,), (wanted,) = run(exported(made, ["y"]), feeds), reference(made, feeds, ["y"])
    assert_near(found, wanted, 1e-5)


def test_codes_of_several_ranges_are_joined_in_one() -> None:
    """Found while running, and constant: codes of the joint range itself stay what they are."""
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[?,6,6,2])
        w = Const(float 0.0)
        v = Const(float 0.0)
        a = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        b = Conv2D(x, v, T=float, strides=[1,1,1,1], padding="SAME")
        r = Relu(a, T=float)
        axis = Const(int32 3)
        c = Concat(axis, r, b, T=float, N=2)
        y = Relu6(c, T=float)
        """,
        w=DRAWN.normal(size=(3, 3, 2, 3)).astype(np.float32),
        v=DRAWN.normal(size=(1, 1, 2, 5)).astype(np.float32),
    )
    x = DRAWN.uniform(-2, 2, size=(2, 6, 6, 2)).astype(np.float32)
    for options in ("", "(fallback_min=-8, fallback_max=8)"):
        rules = f"quantize_weights(minimum_size=1) quantize_nodes{options}"
        coded = transform(graph, rules, inputs="x", outputs="y")
        assert any(node.op == "QuantizedConcat" for node in coded)
        (actual,), (expected,) = run(exported(coded, ["y"]), {"x": x}), reference(coded, {"x": x}, ["y"])
        assert np.max(np.abs(actual - expected)) <= 2.5 * 16 / 255
        assert np.mean(np.abs(actual - expected)) <= 0.8 * 16 / 255
    text = """
        x = Placeholder(dtype=float, shape=[2,3])
        low = Const(float -1.0)
        high = Const(float 3.0)
        half = Const(float 1.0)
        p = QuantizeV2(x, low, high, T=quint8, mode="MIN_FIRST")
        q = QuantizeV2(x, low, half, T=quint8, mode="MIN_FIRST")
        axis = Const(int32 1)
        c = QuantizedConcat(axis, p, q, p:1, q:1, p:2, q:2, N=2, T=quint8)
        y = Dequantize(c, c:1, c:2, T=quint8, mode="MIN_FIRST")
    """
    x = DRAWN.uniform(-1, 3, size=(2, 3)).astype(np.float32)
    proto = exported(text, ["y"])
    (actual,), (expected,) = run(proto, {"x": x}), reference(parse(text), {"x": x}, ["y"])
    assert np.max(np.abs(actual - expected)) <= 4.01 / 255
    assert operators(proto)["QuantizeLinear"] == 3  # of which one moves codes to the joint range


@pytest.mark.parametrize(("mode", "ends", "wanted"), [("MIN_COMBINED", (-1, -1), -1), ("SCALED", (0, 0), 0),
                                                      ("MIN_FIRST", (2, 2), 2)])  # fmt: skip
def test_codes_of_a_range_of_no_width_stand_for_its_end(mode: str, ends: tuple[int, int], wanted: int) -> None:
    """As in TensorFlow 2.21."""
    text = f"""
        x = Placeholder(dtype=quint8, shape=[3])
        low = Const(float {ends[0]})
        high = Const(float {ends[1]})
        y = Dequantize(x, low, high, T=quint8, mode="{mode}")
    """
    (found,) = run(exported(text, ["y"]), {"x": np.array([0, 7, 255], np.uint8)})
    assert found.tolist() == [wanted] * 3


def test_symmetric_codes_have_the_range_that_tensorflow_gives_them() -> None:
    """Codes and ends as TensorFlow 2.21 gives them: the lowest of a narrow range's codes is left out."""
    text = """
        x = Placeholder(dtype=float, shape=[5])
        low = Const(float -2.0)
        high = Const(float 1.0)
        y = QuantizeV2(x, low, high, T=qint8, mode="SCALED", round_mode="HALF_TO_EVEN", narrow_range=true)
    """
    x = np.array([-3, -2, -1.02, 0.5, 2], np.float32)
    codes, low, high = run(exported(text, ["y:0", "y:1", "y:2"]), {"x": x})
    assert codes.tolist() == [-127, -127, -65, 32, 127]
    assert (float(low), float(high)) == (-2, 2)


def test_codes_become_numbers_of_the_type_that_is_asked_for() -> None:
    text = """
        x = Placeholder(dtype=quint8, shape=[3])
        low = Const(float -1.0)
        high = Const(float 1.0)
        d = Dequantize(x, low, high, T=quint8, mode="MIN_COMBINED", dtype=bfloat16)
        y = Cast(d, SrcT=bfloat16, DstT=float)
    """
    (found,) = run(exported(text, ["y"]), {"x": np.array([3, 77, 200], np.uint8)})
    assert found.tolist() == [-0.9765625, -0.396484375, 0.5703125]


X = np.array([-1, -0.9, -0.75, -0.5, -0.3, -0.1, -0.001, 0, 0.001, 0.1, 0.3, 0.5, 0.75, 0.9, 1], np.float32)
BYTE_CODES = [0, 13, 32, 64, 90, 115, 128, 128, 128, 141, 166, 192, 224, 243, 255]


@pytest.mark.parametrize("is_fed", [True, False])
def test_codes_of_a_range_with_zero_between_two_are_those_of_tensorflow(is_fed: bool) -> None:
    """TensorFlow 1.15's and 2.21's codes, and what it makes of them: zero is 128 for the one, 127 for the other."""
    ends = "".join(
        f"""
        {name} = {"Placeholder(dtype=float, shape=[])" if is_fed else f"Const(float {value})"}"""
        for name, value in (("low", -1.0), ("high", 1.0))
    )
    text = f"""
        x = Placeholder(dtype=float, shape=[15]){ends}
        q = QuantizeV2(x, low, high, T=quint8, mode="MIN_FIRST")
        y = Dequantize(q, q:1, q:2, T=quint8, mode="MIN_FIRST")
    """
    codes, numbers = run(exported(text, ["q", "y"]), {"x": X, "low": np.array(-1, "f4"), "high": np.array(1, "f4")})
    assert codes.tolist() == BYTE_CODES
    assert_near(numbers, (np.array(BYTE_CODES) - 127) * 2 / 255, 1e-6)


@pytest.mark.parametrize(("kind", "mode", "wanted"), [("qint8", "SCALED", [-13, -3, 3, 13]),
                                                      ("quint8", "MIN_FIRST", [116, 126, 131, 141]),
                                                      ("qint8", "MIN_FIRST", [-13, -3, 3, 13])])  # fmt: skip
def test_of_two_codes_that_are_equally_near_the_one_farther_from_zero_is_taken(
    kind: str, mode: str, wanted: list[int]
) -> None:
    """As in TensorFlow 1.15 and 2.21."""
    low, high = (0, 255) if kind == "quint8" else (-128, 127)
    x = np.float32([-12.5, -2.5, 2.5, 12.5]) + (128 if kind == "quint8" else 0)
    text = f"""
        x = Placeholder(dtype=float, shape=[4])
        low = Const(float {low})
        high = Const(float {high})
        y = QuantizeV2(x, low, high, T={kind}, mode="{mode}")
    """
    (found,) = run(exported(text, ["y"]), {"x": x})
    assert found.tolist() == wanted


@pytest.mark.parametrize(
    ("kind", "low", "high", "x", "wanted"),
    [
        ("quint8", -255, 0, [-3.5, -2.5, -1.5, -0.5], [252, 253, 254, 255]),
        ("quint8", -0.7, 0.7, [0, 0.35, -0.35, 0.7], [127, 191, 64, 255]),  # 0.7 times the factor is below 127.5
        ("quint8", -128, 127, [-3.5, -2.5, 0.5, 1.5], [125, 126, 129, 130]),
        ("qint8", -100, 155, [-4.5, -3.5, 1.5, 2.5], [-33, -32, -27, -26]),
    ],
)
def test_min_combined_counts_from_the_lowest_code_or_code_zero(
    kind: str, low: float, high: float, x: list[float], wanted: list[int]
) -> None:
    """As in TensorFlow 1.15: of two codes that are equally near the upper one, of signed ones that farther from 0."""
    text = f"""
        x = Placeholder(dtype=float, shape=[4])
        low = Const(float {float(low)!r})
        high = Const(float {float(high)!r})
        y = QuantizeV2(x, low, high, T={kind}, mode="MIN_COMBINED")
    """
    (found,) = run(exported(text, ["y"]), {"x": np.float32(x)})
    assert found.tolist() == wanted


@pytest.mark.parametrize("is_fed", [True, False])
@pytest.mark.parametrize(
    ("kind", "low", "high", "x", "wanted"),
    [
        ("quint8", 0, 1e30, [9.8039215e27, 1.8235294e29, 5.2745097e29], [2, 46, 134]),
        ("qint8", -1e30, 1e30, [-9.921569e29, -7.72549e29, 3.5294117e28], [-127, -99, 3]),
        ("quint8", 0, 6, [2.552941, 4.4823527, 2.9294116], [108, 190, 124]),
    ],
)
def test_codes_are_those_of_a_product_with_a_float32_factor(
    kind: str, low: float, high: float, x: list[float], wanted: list[int], is_fed: bool
) -> None:
    """As in TensorFlow 1.15: a quotient by the step is on the other side of where two codes are equally near."""
    ends = "".join(
        f"""
        {name} = {"Placeholder(dtype=float, shape=[])" if is_fed else f"Const(float {float(value)!r})"}"""
        for name, value in (("low", low), ("high", high))
    )
    text = f"""
        x = Placeholder(dtype=float, shape=[3]){ends}
        q = QuantizeV2(x, low, high, T={kind}, mode="MIN_FIRST")
    """
    feeds = {"x": np.array(x, "f4"), "low": np.array(low, "f4"), "high": np.array(high, "f4")}
    (found,) = run(exported(text, ["q"]), feeds)
    assert found.tolist() == wanted
