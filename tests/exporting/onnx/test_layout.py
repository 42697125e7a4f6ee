"""Channels last become channels first without a Transpose between convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_runs import assert_same, exported, operators, run

NET = """
    x = Placeholder(dtype=float, shape=[{batch},16,16,3])
    w0 = Const(float[3,3,3,4] 0.05)
    w1 = Const(float[3,3,4,4] 0.04)
    bias = Const(float [0.1, -0.2, 0.3, 0.4])
    first = Conv2D(x, w0, T=float, strides=[1,2,2,1], padding="SAME", data_format="NHWC")
    biased = BiasAdd(first, bias, T=float)
    a = Relu6(biased, T=float)
    {between}
    last = Conv2D(b, w1, T=float, strides=[1,1,1,1], padding="{padding}", data_format="NHWC")
    axes = Const(int32 [1, 2])
    y = Mean(last, axes, T=float, Tidx=int32, keep_dims=false)
"""
BETWEEN = {
    "add": "b = AddV2(a, a, T=float)",
    "scale": "s = Const(float [1.5, 2.0, 0.5, 1.0])\nb = Mul(a, s, T=float)",
    "pad": "p = Const(int32 [[0,0],[1,1],[2,2],[0,0]])\nb = Pad(a, p, T=float, Tpaddings=int32)",
    "mirror": "p = Const(int32 [[0,0],[1,1],[2,2],[0,0]])\n"
    'b = MirrorPad(a, p, T=float, Tpaddings=int32, mode="REFLECT")',
    "max pooling": 'b = MaxPool(a, T=float, ksize=[1,3,3,1], strides=[1,2,2,1], padding="SAME")',
    "mean pooling": 'b = AvgPool(a, T=float, ksize=[1,2,2,1], strides=[1,1,1,1], padding="SAME")',
    "resize": "n = Const(int32 [12, 20])\nb = ResizeBilinear(a, n, T=float)",
    "nearest": "n = Const(int32 [16, 16])\nb = ResizeNearestNeighbor(a, n, T=float)",
    "squeeze and excite": "ax = Const(int32 [1, 2])\nm = Mean(a, ax, T=float, Tidx=int32, keep_dims=true)\n"
    "g = Sigmoid(m, T=float)\nb = Mul(a, g, T=float)",
    "batch norm": "s = Const(float [1.5, 2.0, 0.5, 1.0])\nv = Const(float [1.0, 2.0, 3.0, 4.0])\n"
    "b = FusedBatchNorm(a, s, s, s, v, T=float, is_training=false, epsilon=0.001)",
    "old batch norm": "s = Const(float [1.5, 2.0, 0.5, 1.0])\nr = Rsqrt(s, T=float)\n"
    "m = Mul(a, r, T=float)\nb = Sub(m, s, T=float)",
    "join and part": "ax = Const(int32 3)\nj = ConcatV2(a, a, ax, T=float, N=2, Tidx=int32)\n"
    "p = Split(ax, j, T=float, num_split=2)\nb = Maximum(p, p:1, T=float)",
    "slice": "s0 = Const(int32 [0,1,1,0])\ns1 = Const(int32 [-1,6,-1,-1])\nb = Slice(a, s0, s1, T=float, Index=int32)",
    "activation": "h = Elu(a, T=float)\ns = Sigmoid(h, T=float)\nb = Mul(h, s, T=float)",
    "FakeQuant": "b = FakeQuantWithMinMaxArgs(a, min=0.0, max=6.0)",
    "blocks": "s = SpaceToDepth(a, T=float, block_size=2)\nb = DepthToSpace(s, T=float, block_size=2)",
    "atrous": "n = Const(int32 [2, 2])\nc = Const(int32 [[0,0],[0,0]])\n"
    "s = SpaceToBatchND(a, n, c, T=float, Tblock_shape=int32, Tpaddings=int32)\n"
    "b = BatchToSpaceND(s, n, c, T=float, Tblock_shape=int32, Tcrops=int32)",
    "comparison": "z = Const(float 0.5)\nc = Greater(a, z, T=float)\nb = Select(c, a, a, T=float)",
}


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("batch", ["2", "?"])
@pytest.mark.parametrize("between", BETWEEN)
def test_one_transpose_at_the_input(between: str, batch: str, padding: str) -> None:
    text = NET.format(between=BETWEEN[between].replace("\n", "\n    "), batch=batch, padding=padding)
    image = np.random.default_rng(5).normal(size=(2, 16, 16, 3)).astype(np.float32)
    proto = assert_same(text, {"x": image})
    swaps = [list(n.attribute[0].ints) for n in proto.graph.node if n.op_type == "Transpose"]
    expected = 3 if between == "atrous" else 1  # blocks of pixels are moved by transposes of six axes
    assert len(swaps) == expected
    assert sum(len(order) == 4 for order in swaps) == 1


def test_sequences_too() -> None:
    """A convolution in one dimension is one in two, with an axis put in and taken out again."""
    proto = assert_same(
        """
        x = Placeholder(dtype=float, shape=[?,20,3])
        one = Const(int32 1)
        w = Const(float[1,5,3,4] 0.1)
        v = Const(float[1,3,4,4] 0.2)
        a = ExpandDims(x, one, T=float, Tdim=int32)
        b = Conv2D(a, w, T=float, strides=[1,1,1,1], padding="SAME")
        c = Squeeze(b, T=float, squeeze_dims=[1])
        d = Relu(c, T=float)
        e = ExpandDims(d, one, T=float, Tdim=int32)
        f = Conv2D(e, v, T=float, strides=[1,1,1,1], padding="SAME")
        y = Squeeze(f, T=float, squeeze_dims=[1])
        """,
        {"x": np.random.default_rng(1).normal(size=(2, 20, 3)).astype(np.float32)},
    )
    assert operators(proto)["Transpose"] == 2  # in front and behind


def test_a_flat_image_needs_no_transpose() -> None:
    proto = assert_same(
        """
        x = Placeholder(dtype=float, shape=[?,8,8,1])
        w = Const(float[8,8,1,5] 0.1)
        a = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="VALID")
        n = Const(int32 [-1, 5])
        y = Reshape(a, n, T=float, Tshape=int32)
        """,
        {"x": np.random.default_rng(1).normal(size=(3, 8, 8, 1)).astype(np.float32)},
    )
    assert operators(proto)["Transpose"] == 0


def test_volumes() -> None:
    proto = assert_same(
        """
        x = Placeholder(dtype=float, shape=[?,6,6,6,2])
        w = Const(float[3,3,3,2,3] 0.1)
        v = Const(float[3,3,3,3,2] 0.1)
        a = Conv3D(x, w, T=float, strides=[1,1,1,1,1], padding="SAME")
        b = MaxPool3D(a, T=float, ksize=[1,2,2,2,1], strides=[1,2,2,2,1], padding="VALID")
        y = Conv3D(b, v, T=float, strides=[1,1,1,1,1], padding="SAME")
        """,
        {"x": np.random.default_rng(1).normal(size=(1, 6, 6, 6, 2)).astype(np.float32)},
    )
    assert operators(proto)["Transpose"] == 2


@pytest.mark.parametrize(
    ("length", "count", "options"),
    [(14, 16, ""), (26, 14, ""), (32, 97, "half_pixel_centers=true"), (32, 29, "align_corners=true"), (8, 16, "")],
)
def test_the_nearest_pixels_are_tensorflows_where_places_lie_between_two(length: int, count: int, options: str) -> None:
    graph = f"""
        x = Placeholder(dtype=float, shape=[?,{length},6,2])
        size = Const(int32 [{count}, 12])
        y = ResizeNearestNeighbor(x, size, T=float{", " * bool(options)}{options})
    """
    feeds = {"x": np.arange(length * 24, dtype=np.float32).reshape(2, length, 6, 2)}
    assert_same(graph, feeds, ["y"])
    ops = operators(exported(graph, ["y"]))
    assert ("Resize" in ops) == (length == 8)  # what divides evenly stays one operator


def test_a_transpose_that_conjugates_turns_real_numbers_too() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    proto = exported(
        """
        x = Placeholder(dtype=float, shape=[2,3])
        order = Const(int32 [1, 0])
        turned = ConjugateTranspose(x, order, T=float, Tperm=int32)
        y = Neg(turned, T=float)
        """,
        ["y:0"],
    )
    np.testing.assert_array_equal(run(proto, {"x": x})[0], -x.T)


def test_what_follows_a_convolution_in_half_precision_is_converted_where_the_convolution_left_it() -> None:
    """The values are TensorFlow 2.21's. ONNX Runtime computes neither operator in float16."""
    proto = exported(
        """
        x = Placeholder(dtype=half, shape=[?,2,2,1])
        w = Const(half [[[[1, -0.5]]]])
        c = Conv2D(x, w, T=half, strides=[1,1,1,1], padding="SAME")
        p = Softmax(c, T=half)
        axis = Const(int32 1)
        s = Cumsum(c, axis, T=half, Tidx=int32)
        """,
        ["p:0", "s:0"],
    )
    shares, sums = run(proto, {"x": np.float16([[[[1], [2]], [[-1], [0.5]]]])})
    wanted = [[[[0.8174, 0.1824], [0.9526, 0.0474]], [[0.1824, 0.8174], [0.679, 0.3208]]]]
    np.testing.assert_allclose(shares, wanted, atol=1e-3)
    np.testing.assert_array_equal(sums, np.float16([[[[1, -0.5], [2, -1]], [[0, 0], [2.5, -1.25]]]]))
