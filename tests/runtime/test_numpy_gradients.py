"""Gradients that NumPy computes sooner are taken out of LiteRT's parts, and are what they were."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import blas_threads
from pocketgraph.kernels.nn.convolution_gradients import turned_windows
from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
from pocketgraph.kernels.windows import windows_of_op
from pocketgraph.runtime.planning import numpy_gradients
from pocketgraph.runtime.planning.numpy_gradients import LAYER_REASON, PRODUCT_REASON, REASON
from support import assert_close

random = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return random.normal(size=shape).astype(np.float32)


def network(size: int, stride: int = 1, depth: int = 3) -> tuple[Graph, dict[str, np.ndarray]]:
    """A convolution, a depthwise one and the gradients of both, with fed weights."""
    half = -(-size // stride)
    strides = f'strides=list[1,{stride},{stride},1], padding="SAME"'
    text = f"""
        x = Placeholder(dtype=float, shape=[8,{size},{size},{depth}])
        w = Placeholder(dtype=float, shape=[3,3,{depth},16])
        d = Placeholder(dtype=float, shape=[3,3,16,1])
        g = Placeholder(dtype=float, shape=[8,{half},{half},16])
        c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
        r = Relu(c, T=float)
        y = DepthwiseConv2dNative(r, d, T=float, {strides})
        dd = DepthwiseConv2dNativeBackpropFilter(r, d_sizes, g, T=float, {strides})
        dr = DepthwiseConv2dNativeBackpropInput(r_sizes, d, g, T=float, {strides})
        dc = ReluGrad(dr, r, T=float)
        dw = Conv2DBackpropFilter(x, w_sizes, dc, T=float, strides=list[1,1,1,1], padding="SAME")
    """
    sizes = {"d_sizes": (3, 3, 16, 1), "r_sizes": (8, size, size, 16), "w_sizes": (3, 3, depth, 16)}
    feeds = {
        "x:0": floats(8, size, size, depth),
        "w:0": floats(3, 3, depth, 16),
        "d:0": floats(3, 3, 16, 1),
        "g:0": floats(8, half, half, 16),
    }
    return Graph([*(const(name, np.array(value, np.int32)) for name, value in sizes.items()), *parse(text)]), feeds


NAMES = ["y:0", "dd:0", "dr:0", "dw:0"]


@pytest.mark.parametrize(
    ("stride", "gradients", "layers"), [(1, 3, 0), (2, 2, 2)]
)  # the larger convolution is XNNPACK's
def test_they_are_what_litert_computes(stride: int, gradients: int, layers: int) -> None:
    model, feeds = network(32 * stride, stride)
    with Session(model) as session, Session(model, without=["gradients_in_numpy"]) as other:
        plan = str(session.plan(NAMES, feeds))
        assert (plan.count(REASON), plan.count(LAYER_REASON)) == (gradients, layers)
        assert REASON not in str(other.plan(NAMES, feeds))
        for _ in range(2):
            for one, two in zip(session.run(NAMES, feeds), other.run(NAMES, feeds), strict=True):
                assert_close(one, two, 1e-5)


def test_small_ones_stay() -> None:
    model, feeds = network(6)
    with Session(model) as session:
        assert REASON not in str(session.plan(NAMES, feeds))


@pytest.mark.parametrize(("size", "depth", "taken"), [(32, 16, 2), (8, 256, 0)])
def test_wide_ones_stay_where_their_matrix_is_short(size: int, depth: int, taken: int) -> None:
    model, feeds = network(size, depth=depth)
    with Session(model) as session, Session(model, without=["gradients_in_numpy"]) as other:
        assert str(session.plan(["dw:0"], feeds)).count(REASON) == taken  # and the depthwise convolution's
        assert_close(session.run("dw:0", feeds)[0], other.run("dw:0", feeds)[0], 1e-5)


def test_products_of_laid_out_windows_take_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(blas_threads, "at_most", lambda threads: taken.append(threads) or contextlib.nullcontext())
    model, feeds = network(8)
    with Session(model, engine="reference", threads=2) as session:
        session.run("dw:0", feeds)
    assert 1 in taken


def test_gradients_of_pools_and_of_1x1_convolutions_are_what_litert_computes() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[32,32,32,64])
        w = Placeholder(dtype=float, shape=[1,1,64,32])
        c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
        r = Relu(c, T=float)
        p = MaxPool(r, T=float, ksize=list[1,2,2,1], strides=list[1,2,2,1], padding="SAME")
        dp = Placeholder(dtype=float, shape=[32,16,16,32])
        dr = MaxPoolGrad(r, p, dp, T=float, ksize=list[1,2,2,1], strides=list[1,2,2,1], padding="SAME")
        dc = ReluGrad(dr, r, T=float)
        db = BiasAddGrad(dc, T=float)
        dw = Conv2DBackpropFilter(x, w_sizes, dc, T=float, strides=list[1,1,1,1], padding="SAME")
        dx = Conv2DBackpropInput(x_sizes, w, dc, T=float, strides=list[1,1,1,1], padding="SAME")
    """
    sizes = {"w_sizes": (1, 1, 64, 32), "x_sizes": (32, 32, 32, 64)}
    model = Graph([*(const(name, np.array(value, np.int32)) for name, value in sizes.items()), *parse(text)])
    feeds = {"x:0": floats(32, 32, 32, 64), "w:0": floats(1, 1, 64, 32), "dp:0": floats(32, 16, 16, 32)}
    names, off = ["dw:0", "dx:0", "db:0"], ["gradients_in_numpy"]
    with Session(model) as session, Session(model, without=off) as other:
        assert str(session.plan(names, feeds)).count(REASON) == 3
        assert REASON not in str(other.plan(names, feeds))
        for one, two in zip(session.run(names, feeds), other.run(names, feeds), strict=True):
            assert_close(one, two, 1e-5)


def dense(layers: int = 1) -> tuple[Graph, dict[str, np.ndarray], list[str]]:
    """Products with fed weights, a rectifier, and their gradients; one weights for all layers."""
    text = """
        x0 = Placeholder(dtype=float, shape=[64,128])
        v = Placeholder(dtype=float, shape=[128,128])
        w = Identity(v, T=float)
        g = Placeholder(dtype=float, shape=[64,128])
    """
    for k in range(layers):
        text += f"""
            y{k} = MatMul(x{k}, w, T=float)
            x{k + 1} = Relu(y{k}, T=float)
        """
    slope = "g"
    for k in reversed(range(layers)):
        text += f"""
            dy{k} = ReluGrad({slope}, x{k + 1}, T=float)
            dw{k} = MatMul(x{k}, dy{k}, T=float, transpose_a=true)
            dx{k} = MatMul(dy{k}, w, T=float, transpose_b=true)
        """
        slope = f"dx{k}"
    feeds = {"x0:0": floats(64, 128), "v:0": floats(128, 128), "g:0": floats(64, 128)}
    return parse(text), feeds, [*(f"dw{k}:0" for k in range(layers)), "dx0:0"]


def test_products_of_a_dense_layer_are_what_litert_computes() -> None:
    model, feeds, names = dense()
    with Session(model) as session, Session(model, without=["products_in_numpy"]) as other:
        assert str(session.plan(names, feeds)).count(PRODUCT_REASON) == 1  # that of three nodes
        assert "3 MatMul: " + PRODUCT_REASON in str(session.plan(names, feeds))
        assert PRODUCT_REASON not in str(other.plan(names, feeds))
        for one, two in zip(session.run(names, feeds), other.run(names, feeds), strict=True):
            assert_close(one, two, 1e-5)


def test_products_of_a_loop_that_is_written_out_stay() -> None:
    model, feeds, names = dense(3)
    with Session(model) as session:
        assert PRODUCT_REASON not in str(session.plan(names, feeds))


def test_products_without_a_gradient_stay() -> None:
    model, feeds, _ = dense()
    with Session(model) as session:
        assert PRODUCT_REASON not in str(session.plan(["x1:0"], feeds))


@pytest.mark.parametrize(
    ("window", "padding", "gaps"),
    [
        ((3, 3), b"SAME", (1, 1)),
        ((3, 3), b"VALID", (1, 1)),
        ((3, 2), b"SAME", (1, 1)),
        ((3, 2), b"SAME", (1, 2)),
    ],
)
def test_gradients_by_images_are_convolutions_that_xnnpack_has(
    window: tuple[int, int], padding: bytes, gaps: tuple[int, int]
) -> None:
    """Where their border has no name, of images that have it already."""
    spans = windows_of_op((9, 8), window, (1, 1, 1, 1), padding.decode(), "NHWC", (1, *gaps, 1), ())
    back = turned_windows((9, 8), spans)
    assert back is not None
    images = (2, *(span.output for span in spans), 3)
    kind = ConvolutionKind("Conv2D", images, (*window, 3, 3), tuple(back), "").with_border()
    assert kind.padding() == "VALID"
    assert kind.result == (2, 9, 8, 3)


@pytest.mark.parametrize(
    ("padding", "steps", "is_one"), [(b"SAME", 2, False), (b"VALID", 2, True), (b"VALID", 1, False)]
)
def test_pools_of_wide_layers_lie_side_by_side(padding: bytes, steps: int, is_one: bool) -> None:
    """Over seven columns: else the step that fuses a layer would leave it to its nodes."""
    attrs = {"ksize": (1, 2, 2, 1), "strides": (1, steps, steps, 1), "padding": padding}
    pool = Node("p", "MaxPool", ("r",), attrs)
    assert numpy_gradients._lies_side_by_side(pool, (6, 7)) == is_one
    assert numpy_gradients._lies_side_by_side(pool, (6, 8)) == (steps == 2)


def test_layers_before_pools_that_overlap_mask_themselves() -> None:
    pool = 'T=float, ksize=list[1,3,3,1], strides=list[1,2,2,1], padding="SAME"'
    text = f"""
        x = Placeholder(dtype=float, shape=[32,24,24,3])
        w = Placeholder(dtype=float, shape=[5,5,3,32])
        b = Placeholder(dtype=float, shape=[32])
        dp = Placeholder(dtype=float, shape=[32,12,12,32])
        c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
        y = BiasAdd(c, b, T=float)
        r = Relu(y, T=float)
        p = MaxPool(r, {pool})
        dr = MaxPoolGrad(r, p, dp, {pool})
        m = ReluGrad(dr, r, T=float)
        db = BiasAddGrad(m, T=float)
        dw = Conv2DBackpropFilter(x, sizes, m, T=float, strides=list[1,1,1,1], padding="SAME")
    """
    model = Graph([const("sizes", np.array([5, 5, 3, 32], np.int32)), *parse(text)])
    feeds = {
        "x:0": floats(32, 24, 24, 3),
        "w:0": floats(5, 5, 3, 32),
        "b:0": floats(32),
        "dp:0": floats(32, 12, 12, 32),
    }
    names = ["p:0", "dw:0", "db:0"]
    off = ["fused_rectified_layers", "gradients_in_numpy"]
    with Session(model) as session, Session(model, without=off) as other, Session(model, engine="reference") as plain:
        plan = str(session.plan(names, feeds))
        assert LAYER_REASON in plan
        assert REASON in plan
        for _ in range(3):  # the third time XNNPACK computes the convolution
            found = session.run(names, feeds)
            for one, two, three in zip(found, other.run(names, feeds), plain.run(names, feeds), strict=True):
                assert_close(one, three, 2e-5)
                assert_close(two, three, 2e-5)
