"""Graphs in NCHW run as NHWC inside, with transposes at the borders only."""

from __future__ import annotations

import numpy as np
import pytest

from litert.single_ops import run_graph, run_reference
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from support import assert_close

random = np.random.default_rng(5)

NET = """
    x = Placeholder(dtype=float, shape=[2,3,8,8])
    p = Pad(x, pads, T=float, Tpaddings=int32)
    c = Conv2D(p, w, T=float, strides=list[1,1,2,2], padding="VALID", data_format="NCHW")
    b = BiasAdd(c, v, T=float, data_format="NCHW")
    n = FusedBatchNorm(b, v, v, v, positive, T=float, epsilon=0.01, is_training=false, data_format="NCHW")
    r = Relu(n, T=float)
    d = DepthwiseConv2dNative(r, dw, T=float, strides=list[1,1,1,1], padding="SAME", data_format="NCHW")
    m = MaxPool(d, T=float, ksize=list[1,1,2,2], strides=list[1,1,2,2], padding="SAME", data_format="NCHW")
    a = AvgPool(d, T=float, ksize=list[1,1,2,2], strides=list[1,1,2,2], padding="SAME", data_format="NCHW")
    j = ConcatV2(m, a, axis, T=float, N=2, Tidx=int32)
    s = Mul(j, across, T=float)
"""
TAILS = {
    "y = Mean(s, spatial, T=float, Tidx=int32, keep_dims=false)": 0,
    "y = Mean(s, spatial, T=float, Tidx=int32, keep_dims=true)": 0,  # of one pixel: a reshape
    "y = Relu6(s, T=float)": 1,
    "t = Transpose(s, to_hwc, T=float, Tperm=int32)\ny = Relu6(t, T=float)": 0,
    "k = Slice(s, begin, size, T=float, Index=int32)\ny = Max(k, spatial, T=float, Tidx=int32)": 0,
}
"""How the net ends, and how many transposes that needs beside the one at the input."""


def floats(*shape: int) -> np.ndarray:
    return random.uniform(-1, 1, shape).astype(np.float32)


def nchw_graph(tail: str) -> Graph:
    constants = {
        "pads": np.array([(0, 0), (0, 0), (1, 1), (1, 1)], np.int32),
        "w": floats(3, 3, 3, 4),
        "v": floats(4),
        "positive": np.abs(floats(4)) + 0.5,
        "dw": floats(3, 3, 4, 1),
        "axis": np.int32(1),
        "across": floats(8, 1, 1),
        "spatial": np.array([2, 3], np.int32),
        "to_hwc": np.array([0, 2, 3, 1], np.int32),
        "begin": np.array([0, 1, 0, 1], np.int32),
        "size": np.array([2, 5, 2, 1], np.int32),
    }
    return Graph([*(const(name, value) for name, value in constants.items()), *parse(NET + tail)])


@pytest.mark.parametrize("tail", TAILS)
def test_nchw(tail: str) -> None:
    graph = nchw_graph(tail)
    feeds = {"x:0": floats(2, 3, 8, 8)}
    (actual,), codes = run_graph(graph, feeds, ["y:0"])
    assert_close(actual, run_reference(graph, feeds, ["y:0"])[0])
    assert codes[:3] == ["PAD", "TRANSPOSE", "CONV_2D"]
    assert codes.count("TRANSPOSE") == 1 + TAILS[tail]
    assert codes.count("MUL") == 1
    assert not {"ADD", "RELU"} & set(codes)


def test_a_residual_connection_stays_inside() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[1,4,6,6])
        c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME", data_format="NCHW")
        d = Conv2D(c, w, T=float, strides=list[1,1,1,1], padding="SAME", data_format="NCHW")
        s = AddV2(c, d, T=float)
        y = Relu(s, T=float)
    """
    graph = Graph([const("w", floats(3, 3, 4, 4)), *parse(text)])
    feeds = {"x:0": floats(1, 4, 6, 6)}
    (actual,), codes = run_graph(graph, feeds, ["y:0"])
    assert codes == ["TRANSPOSE", "CONV_2D", "CONV_2D", "ADD", "TRANSPOSE"]
    assert_close(actual, run_reference(graph, feeds, ["y:0"])[0])


def test_mixed_layouts_meet_at_a_transpose() -> None:
    """One operand comes in NCHW from outside, the other from a convolution."""
    text = """
        x = Placeholder(dtype=float, shape=[1,4,6,6])
        c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME", data_format="NCHW")
        y = AddV2(c, x, T=float)
    """
    graph = Graph([const("w", floats(3, 3, 4, 4)), *parse(text)])
    feeds = {"x:0": floats(1, 4, 6, 6)}
    (actual,), _ = run_graph(graph, feeds, ["y:0"])
    assert_close(actual, run_reference(graph, feeds, ["y:0"])[0])


def test_transposes_that_undo_each_other_vanish() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2,3,4])
        a = Transpose(x, first, T=float, Tperm=int32)
        b = Exp(a, T=float)
        y = Transpose(b, second, T=float, Tperm=int32)
    """
    first, second = np.array([2, 0, 1], np.int32), np.array([1, 2, 0], np.int32)
    graph = Graph([const("first", first), const("second", second), *parse(text)])
    feeds = {"x:0": floats(2, 3, 4)}
    (actual,), codes = run_graph(graph, feeds, ["y:0"])
    assert codes == ["EXP"]
    assert_close(actual, run_reference(graph, feeds, ["y:0"])[0])
