"""What the optimizer makes of small graphs: which operators are left, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from litert.single_ops import run_graph, run_reference
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from support import assert_close

random = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return random.uniform(-1, 1, shape).astype(np.float32)


def graph(text: str, **constants: np.ndarray) -> Graph:
    """The graph of this text form with these constants in front."""
    return Graph([*(const(name, value) for name, value in constants.items()), *parse(text)])


def check(model: Graph, operators: list[str], *shape: int, output: str = "y", relative: float = 1e-5) -> None:
    """The graph becomes these operators and computes what the reference kernels compute."""
    feeds = {"x:0": floats(*shape)}
    (actual,), codes = run_graph(model, feeds, [f"{output}:0"])
    (expected,) = run_reference(model, feeds, [f"{output}:0"])
    assert codes == operators
    assert_close(actual, expected, relative)


CONV = 'c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")\n'
PLACEHOLDER = "x = Placeholder(dtype=float, shape=[1,6,6,3])\n"
STATISTICS = {"mean": floats(4), "variance": np.abs(floats(4)) + 0.5, "scale": floats(4), "offset": floats(4)}


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_batch_norm_goes_into_the_convolution(version: str) -> None:
    text = PLACEHOLDER + CONV + (
        f"n = FusedBatchNorm{version}(c, scale, offset, mean, variance, T=float, U=float, epsilon=0.001,"
        " is_training=false)\ny = Relu6(n, T=float)\n"
    )  # fmt: skip
    check(graph(text, w=floats(3, 3, 3, 4), **STATISTICS), ["CONV_2D"], 1, 6, 6, 3)


@pytest.mark.filterwarnings("error")
def test_broken_statistics_spoil_their_channel_and_nothing_else() -> None:
    text = PLACEHOLDER + CONV + (
        "y = FusedBatchNorm(c, scale, offset, mean, variance, T=float, epsilon=0.001, is_training=false)\n"
    )  # fmt: skip
    broken = STATISTICS | {"variance": np.float32([-1, 0.5, 0.5, 0.5])}
    model = graph(text, w=floats(3, 3, 3, 4), **broken)
    (actual,), _ = run_graph(model, {"x:0": floats(1, 6, 6, 3)}, ["y:0"])
    np.testing.assert_array_equal(np.isnan(actual).all(axis=(0, 1, 2)), [True, False, False, False])
    assert np.isfinite(actual[..., 1:]).all()


def test_spelled_out_batch_norm_goes_into_the_convolution() -> None:
    text = PLACEHOLDER + CONV + """
        lifted = Add(variance, epsilon, T=float)
        root = Rsqrt(lifted, T=float)
        factor = Mul(root, scale, T=float)
        scaled = Mul(c, factor, T=float)
        moved = Mul(mean, factor, T=float)
        shift = Sub(offset, moved, T=float)
        n = Add(scaled, shift, T=float)
        y = Relu(n, T=float)
    """  # fmt: skip
    check(graph(text, w=floats(3, 3, 3, 4), epsilon=np.float32(0.001), **STATISTICS), ["CONV_2D"], 1, 6, 6, 3)


def test_old_batch_norm_goes_into_the_convolution() -> None:
    text = PLACEHOLDER + CONV + (
        "y = BatchNormWithGlobalNormalization(c, mean, variance, offset, scale, T=float, variance_epsilon=0.01,"
        " scale_after_normalization=true)\n"
    )  # fmt: skip
    check(graph(text, w=floats(3, 3, 3, 4), **STATISTICS), ["CONV_2D"], 1, 6, 6, 3)


def test_batch_norm_in_training_mode_takes_the_batch_statistics() -> None:
    text = PLACEHOLDER + CONV + (
        "y = FusedBatchNorm(c, scale, offset, none, none, T=float, epsilon=0.001, is_training=true)\n"
    )  # fmt: skip
    constants = {"scale": floats(4), "offset": floats(4), "none": np.zeros(0, np.float32)}
    operators = ["CONV_2D", "MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "ADD"]
    check(graph(text, w=floats(3, 3, 3, 4), **constants), operators, 1, 6, 6, 3)


@pytest.mark.parametrize(
    "line",
    [
        "y = BiasAdd(c, v, T=float)",
        "y = AddV2(v, c, T=float)",
        "y = Sub(c, v, T=float)",
        "y = Sub(v, c, T=float)",
        "y = Mul(c, v, T=float)",
        "y = RealDiv(c, v, T=float)",
    ],
)
def test_a_vector_over_channels_goes_into_the_weights(line: str) -> None:
    check(graph(PLACEHOLDER + CONV + line, w=floats(3, 3, 3, 4), v=floats(4) + 2), ["CONV_2D"], 1, 6, 6, 3)


@pytest.mark.parametrize(
    ("line", "left"), [("y = RealDiv(v, c, T=float)", "DIV"), ("y = Maximum(c, v, T=float)", "MAXIMUM")]
)
def test_what_is_not_affine_stays(line: str, left: str) -> None:
    model = graph(PLACEHOLDER + CONV + line, w=np.abs(floats(3, 3, 3, 4)) + 1, v=floats(4))
    feeds = {"x:0": np.abs(floats(1, 6, 6, 3)) + 1}
    (actual,), codes = run_graph(model, feeds, ["y:0"])
    assert codes == ["CONV_2D", left]
    assert_close(actual, run_reference(model, feeds, ["y:0"])[0])


def test_a_row_of_the_image_is_no_bias() -> None:
    """Six columns of four channels: a vector of 6 over columns broadcasts along another axis."""
    model = graph(PLACEHOLDER + CONV + "y = AddV2(c, v, T=float)", w=floats(3, 3, 3, 4), v=floats(6, 1))
    check(model, ["CONV_2D", "ADD"], 1, 6, 6, 3)


def test_a_result_that_is_read_twice_is_not_changed() -> None:
    text = PLACEHOLDER + CONV + "b = BiasAdd(c, v, T=float)\ny = AddV2(b, c, T=float)"
    check(graph(text, w=floats(3, 3, 3, 4), v=floats(4)), ["CONV_2D", "ADD", "ADD"], 1, 6, 6, 3)


def test_a_result_that_is_fetched_is_not_changed() -> None:
    model = graph(PLACEHOLDER + CONV + "y = BiasAdd(c, v, T=float)", w=floats(3, 3, 3, 4), v=floats(4))
    feeds = {"x:0": floats(1, 6, 6, 3)}
    actual, codes = run_graph(model, feeds, ["c:0", "y:0"])
    assert codes == ["CONV_2D", "ADD"]
    for mine, theirs in zip(actual, run_reference(model, feeds, ["c:0", "y:0"]), strict=True):
        assert_close(mine, theirs)


def test_weights_of_a_depthwise_convolution_are_scaled_by_output_channel() -> None:
    text = PLACEHOLDER + (
        'c = DepthwiseConv2dNative(x, w, T=float, strides=list[1,2,2,1], padding="SAME")\n'
        "m = Mul(c, v, T=float)\ny = BiasAdd(m, v, T=float)\n"
    )
    check(graph(text, w=floats(3, 3, 3, 2), v=floats(6)), ["DEPTHWISE_CONV_2D"], 1, 6, 6, 3)


@pytest.mark.parametrize("turned", ["false", "true"])
def test_a_product_with_constant_weights_takes_bias_and_activation(turned: str) -> None:
    text = f"""
        x = Placeholder(dtype=float, shape=[2,5])
        p = MatMul(x, w, T=float, transpose_a=false, transpose_b={turned})
        b = BiasAdd(p, v, T=float)
        y = Relu(b, T=float)
    """
    weights = floats(7, 5) if turned == "true" else floats(5, 7)
    check(graph(text, w=weights, v=floats(7)), ["FULLY_CONNECTED"], 2, 5)


def test_a_transposed_convolution_takes_its_bias() -> None:
    text = PLACEHOLDER + (
        'c = Conv2DBackpropInput(size, w, x, T=float, strides=list[1,2,2,1], padding="SAME")\n'
        "y = BiasAdd(c, v, T=float)\n"
    )
    check(
        graph(text, size=np.array([1, 12, 12, 4], np.int32), w=floats(3, 3, 4, 3), v=floats(4)),
        ["PAD", "CONV_2D", "DEPTH_TO_SPACE"],
        1, 6, 6, 3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "operators"),
    [
        ("y = Maximum(x, zero, T=float)", ["RELU"]),
        ("m = Minimum(x, six, T=float)\ny = Maximum(m, zero, T=float)", ["RELU6"]),
        ("m = Relu(x, T=float)\ny = Minimum(m, six, T=float)", ["RELU6"]),
        ("m = Maximum(x, low, T=float)\ny = Minimum(m, one, T=float)", ["RELU_N1_TO_1"]),
        ("m = Mul(x, slope, T=float)\ny = Maximum(x, m, T=float)", ["LEAKY_RELU"]),
        ("m = Mul(x, six, T=float)\ny = Maximum(x, m, T=float)", ["MUL", "MAXIMUM"]),
        ("m = Minimum(x, one, T=float)\ny = Maximum(m, zero, T=float)", ["MINIMUM", "RELU"]),
    ],
)
def test_activations_are_recognised(lines: str, operators: list[str]) -> None:
    numbers = {"zero": 0, "six": 6, "one": 1, "low": -1, "slope": 0.25}
    constants = {name: np.float32(value) for name, value in numbers.items()}
    model = graph("x = Placeholder(dtype=float, shape=[4,9])\n" + lines, **constants)
    feeds = {"x:0": floats(4, 9) * 12}
    (actual,), codes = run_graph(model, feeds, ["y:0"])
    assert codes == operators
    assert_close(actual, run_reference(model, feeds, ["y:0"])[0])


@pytest.mark.parametrize(("size", "rate"), [(6, 2), (7, 2), (9, 3)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilation_by_batching_becomes_a_dilated_convolution(size: int, rate: int, padding: str) -> None:
    """As tf.nn.atrous_conv2d spells it: base padding for SAME, then as much as makes the size divisible."""
    base = (rate, rate) if padding == "SAME" else (0, 0)
    extra = -(size + sum(base)) % rate
    pads = np.array([[base[0], base[1] + extra]] * 2, np.int32)
    crops = np.array([[0, extra]] * 2, np.int32)
    text = f"""
        x = Placeholder(dtype=float, shape=[1,{size},{size},3])
        s = SpaceToBatchND(x, block, pads, T=float, Tblock_shape=int32, Tpaddings=int32)
        c = Conv2D(s, w, T=float, strides=list[1,1,1,1], padding="VALID")
        b = BatchToSpaceND(c, block, crops, T=float, Tblock_shape=int32, Tcrops=int32)
        n = BiasAdd(b, v, T=float)
        y = Relu(n, T=float)
    """
    block = np.array([rate, rate], np.int32)
    model = graph(text, block=block, pads=pads, crops=crops, w=floats(3, 3, 3, 4), v=floats(4))
    check(model, ["CONV_2D"], 1, size, size, 3)


@pytest.mark.parametrize(
    ("pads", "third", "operators"),
    [
        ((0, 2), "y = Mul(b1, b2, T=float)", ["PAD", "CONV_2D", "CONV_2D", "MUL"]),
        ((0, 0), "y = Mul(b1, b2, T=float)", ["CONV_2D", "CONV_2D", "MUL"]),
        (
            (0, 2),
            """
            t = Mean(s, axes, T=float, Tidx=int32, keep_dims=true)
            p = Mul(b1, b2, T=float)
            y = Mul(p, t, T=float)
            """,
            ["PAD", "SPACE_TO_BATCH_ND", "CONV_2D", "CONV_2D", "MUL", "MEAN", "MUL"],
        ),
    ],
)
def test_batches_that_several_convolutions_read_become_dilated_ones(
    pads: tuple[int, int], third: str, operators: list[str]
) -> None:
    """As the gates of a WaveNet read them; others that read them too keep them."""
    model = graph(
        f"""
        x = Placeholder(dtype=float, shape=[1,6,6,3])
        s = SpaceToBatchND(x, block, pads, T=float, Tblock_shape=int32, Tpaddings=int32)
        c1 = Conv2D(s, w1, T=float, strides=list[1,1,1,1], padding="VALID")
        b1 = BatchToSpaceND(c1, block, crops, T=float, Tblock_shape=int32, Tcrops=int32)
        c2 = Conv2D(s, w2, T=float, strides=list[1,1,1,1], padding="VALID")
        b2 = BatchToSpaceND(c2, block, crops, T=float, Tblock_shape=int32, Tcrops=int32)
        {third}
        """,
        block=np.array([2, 2], np.int32), pads=np.array([pads] * 2, np.int32), crops=np.zeros((2, 2), np.int32),
        w1=floats(2, 2, 3, 4), w2=floats(2, 2, 3, 4), axes=np.array([0, 1, 2, 3], np.int32),
    )  # fmt: skip
    check(model, operators, 1, 6, 6, 3)


@pytest.mark.parametrize(
    ("pads", "operators"), [((0, 1), ["CONV_2D"]), ((1, 1), ["PAD", "CONV_2D"]), ((1, 0), ["PAD", "CONV_2D"])]
)
def test_padding_that_same_would_add_is_the_convolutions_own(pads: tuple[int, int], operators: list[str]) -> None:
    text = PLACEHOLDER + (
        "p = Pad(x, pads, T=float, Tpaddings=int32)\n"
        'y = Conv2D(p, w, T=float, strides=list[1,2,2,1], padding="VALID")\n'
    )
    rows = np.array([(0, 0), pads, pads, (0, 0)], np.int32)
    check(graph(text, pads=rows, w=floats(3, 3, 3, 4)), operators, 1, 6, 6, 3)


def test_means_of_groups_of_channels_have_few_axes() -> None:
    """A small diffusion step takes 0.8 of the time so."""
    model = graph(
        """
        x = Placeholder(dtype=float, shape=[1,6,6,8])
        v = Reshape(x, groups, T=float, Tshape=int32)
        m = Mean(v, axes, T=float, Tidx=int32, keep_dims=true)
        y = SquaredDifference(v, m, T=float)
        """,
        groups=np.array([1, 6, 6, 4, 2], np.int32), axes=np.array([1, 2, 4], np.int32),
    )  # fmt: skip
    check(model, ["RESHAPE", "MEAN", "SQUARED_DIFFERENCE", "RESHAPE"], 1, 6, 6, 8)


def test_reshapes_in_a_row_are_one() -> None:
    text = PLACEHOLDER + """
        a = Reshape(x, flat, T=float, Tshape=int32)
        b = ExpandDims(a, axis, T=float, Tdim=int32)
        c = Squeeze(b, T=float, squeeze_dims=[0])
        y = Relu(c, T=float)
    """  # fmt: skip
    model = graph(text, flat=np.array([2, -1], np.int32), axis=np.int32(0))
    check(model, ["RESHAPE", "RELU"], 1, 6, 6, 3)


def test_what_nobody_asks_for_is_not_computed() -> None:
    text = PLACEHOLDER + "unused = Exp(x, T=float)\ny = Relu(x, T=float)\nalso = Tanh(y, T=float)\n"
    check(graph(text), ["RELU"], 1, 6, 6, 3)


def test_a_shape_that_is_computed_from_a_shape_is_a_constant() -> None:
    text = PLACEHOLDER + """
        s = Shape(x, T=float, out_type=int32)
        n = StridedSlice(s, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
        t = Pack(n, rest, T=int32, N=2, axis=0)
        r = Reshape(x, t, T=float, Tshape=int32)
        y = Softmax(r, T=float)
    """  # fmt: skip
    zero, one = np.array([0], np.int32), np.array([1], np.int32)
    check(graph(text, zero=zero, one=one, rest=np.int32(-1)), ["RESHAPE", "SOFTMAX"], 1, 6, 6, 3)


def test_equal_operations_on_equal_operands_are_one() -> None:
    text = (
        "x = Placeholder(dtype=float, shape=[1,6,6,3])\n"
        "m = Const(int32 [[0,0],[1,1],[1,1],[0,0]])\nn = Const(int32 [[0,0],[1,1],[1,1],[0,0]])\n"
        "other = Const(int32 [[0,0],[2,0],[1,1],[0,0]])\n"
        "a = Pad(x, m, T=float, Tpaddings=int32)\nb = Pad(x, n, T=float, Tpaddings=int32)\n"
        "c = Pad(x, other, T=float, Tpaddings=int32)\n"
        "d = Tanh(a, T=float)\ne = Tanh(b, T=float)\nf = Sub(d, c, T=float)\ny = Add(f, e, T=float)\n"
    )
    check(graph(text), ["PAD", "TANH", "PAD", "SUB", "ADD"], 1, 6, 6, 3)


def test_equal_outcomes_stay_two_where_both_are_asked_for() -> None:
    model = graph("x = Placeholder(dtype=float, shape=[4])\na = Tanh(x, T=float)\nb = Tanh(x, T=float)\n")
    values, codes = run_graph(model, {"x:0": floats(4)}, ["a:0", "b:0"])
    assert codes == ["TANH", "TANH"]
    np.testing.assert_array_equal(*values)
