"""What each graph pass does, as a picture: the graph that is given, and the one that results of this pass alone.

Both are run on the reference engine, and give the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from function_text import with_functions
from loop_text import counted_loop
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.planning.graph_passes import INEXACT, PASSES, specialized
from pocketgraph.runtime.planning.graph_state import GraphState
from support import assert_text


class Picture(NamedTuple):
    """What a pass does.

    Attributes:
        given: the graph, from the feeds to ``y``.
        feeds: arrays by node; the values of single truth values and floats may be relied on.
        result: the nodes that are needed afterwards.
        functions: the lines of the graph's library.
    """

    given: str
    feeds: Mapping[str, Any]
    result: str
    functions: tuple[str, ...] = ()


ROW = np.array([[1.0, -2.0, 3.0, 0.5]], np.float32)
PICTURES = {
    "inline_functions": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4])
        call = PartitionedCall(x, Tin=[float], Tout=[float], f=func(twice))
        y = Relu(call, T=float)
        """,
        {"x": ROW},
        """
        call/sum = Add(x, x, T=float)
        y = Relu(call/sum, T=float)
        """,
        ("twice(a: float) -> sum:z:0", "sum = Add(a, a, T=float)"),
    ),
    "take_defaults": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4])
        one = Const(float 1.0)
        keep = PlaceholderWithDefault(one, dtype=float, shape=[])
        y = Mul(x, keep, T=float)
        """,
        {"x": ROW},
        """
        one = Const(float 1.0)
        keep = Identity(one, T=float)
        y = Mul(x, keep, T=float)
        """,
    ),
    "drop_untaken_branches": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4])
        training = Placeholder(dtype=bool, shape=[])
        s = Switch(x, training, T=float)
        noisy = Square(s:1, T=float)
        plain = Neg(s, T=float)
        joined = Merge(plain, noisy, N=2, T=float)
        y = Relu(joined, T=float)
        """,
        {"x": ROW, "training": np.array(False)},
        """
        plain = Neg(x:0, T=float)
        joined = Identity(plain:0, T=float)
        y = Relu(joined, T=float)
        """,
    ),
    "fold_constants": Picture(
        """
        x = Placeholder(dtype=float, shape=[?,4])
        shape = Shape(x, T=float, out_type=int32)
        two = Const(int32 2)
        sizes = Mul(shape, two, T=int32)
        filled = Fill(sizes, half, T=float, index_type=int32)
        half = Const(float 0.5)
        total = Sum(filled, axes, T=float, Tidx=int32)
        axes = Const(int32 [0, 1])
        y = Mul(x, total, T=float)
        """,
        {"x": ROW},
        """
        total = Const(float 8.0)
        y = Mul(x, total, T=float)
        """,
    ),
    "remove_dropout": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4])
        keep = Placeholder(dtype=float, shape=[])
        shape = Shape(x, T=float)
        u = RandomUniform(shape, T=int32, dtype=float)
        sum = Add(keep, u, T=float)
        mask = Floor(sum, T=float)
        scaled = RealDiv(x, keep, T=float)
        dropped = Mul(scaled, mask, T=float)
        y = Relu(dropped, T=float)
        """,
        {"x": ROW, "keep": np.float32(1)},
        """
        scaled = Identity(x:0, T=float)
        dropped = Identity(scaled:0, T=float)
        y = Relu(dropped, T=float)
        """,
    ),
    "unroll_loops": Picture(
        "x = Placeholder(dtype=float, shape=[1,4])\ntwo = Const(int32 2)\n"
        + counted_loop("two", "next = Sin(v, T=float)"),
        {"x": ROW},
        """
        y = Identity(next/round_1:0, T=float)
        next/round_0 = Sin(x:0, T=float)
        next/round_1 = Sin(next/round_0:0, T=float)
        """,
    ),
    "hoist_over_splits": Picture(
        """
        x = Placeholder(dtype=float, shape=[2,4])
        axis = Const(int32 0)
        s = Split(axis, x, T=float, num_split=2)
        most = Const(float 1.0)
        a = Minimum(s, most, T=float)
        b = Minimum(s:1, most, T=float)
        y = Sub(a, b, T=float)
        """,
        {"x": np.concatenate([ROW, 2 * ROW])},
        """
        axis = Const(int32 0)
        s = Split(axis:0, s/joined_0:0, T=float, num_split=2)
        most = Const(float 1.0)
        a = Identity(s:0, T=float)
        b = Identity(s:1, T=float)
        y = Sub(a, b, T=float)
        s/joined_0 = Minimum(x:0, most:0, T=float)
        """,
    ),
    "drop_idle_waits": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4])
        first = Neg(x, T=float)
        one = Const(float 1.0, ^first)
        y = Add(x, one, ^first, T=float)
        """,
        {"x": ROW},
        """
        one = Const(float 1.0)
        y = Add(x, one, T=float)
        """,
    ),
    "eight_bits_in_floats": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4])
        low = Const(float -4.0)
        high = Const(float 4.0)
        q = QuantizeV2(x, low, high, T=quint8, mode="MIN_FIRST")
        r = QuantizedRelu(q, q:1, q:2, Tinput=quint8, out_type=quint8)
        y = Dequantize(r, r:1, r:2, T=quint8, mode="MIN_FIRST")
        """,
        {"x": ROW},
        """
        q/constant = Const(float 31.875)
        q/mul = Mul(x, q/constant, T=float)
        q/abs = Abs(q/mul, T=float)
        q/constant_1 = Const(float 0.49999997)
        q/add = Add(q/abs, q/constant_1, T=float)
        q/floor = Floor(q/add, T=float)
        q/sign = Sign(q/mul, T=float)
        q/mul_1 = Mul(q/floor, q/sign, T=float)
        q/constant_2 = Const(float -128.0)
        q/sub = Sub(q/mul_1, q/constant_2, T=float)
        q/relu = Relu(q/sub, T=float)
        q/constant_3 = Const(float 255.0)
        q/minimum = Minimum(q/relu, q/constant_3, T=float)
        q = Identity(q/minimum, T=float)
        r/constant = Const(float 128.0)
        r/maximum = Maximum(q, r/constant, T=float)
        r = Identity(r/maximum, T=float)
        y/constant = Const(float 0.03137255)
        y/mul = Mul(r, y/constant, T=float)
        y/constant_1 = Const(float -3.984314)
        y = Add(y/mul, y/constant_1, T=float)
        """,
    ),
    "canonical_biases": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,2,2,1])
        w = Placeholder(dtype=float, shape=[1,1,1,2])
        b = Placeholder(dtype=float, shape=[2])
        dr = Placeholder(dtype=float, shape=[1,2,2,2])
        c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
        z = AddV2(b, c, T=float)
        r = Relu(z, T=float)
        dz = ReluGrad(dr, r, T=float)
        axes = Const(int32 [0, 1, 2])
        sums = Sum(dz, axes, T=float, Tidx=int32)
        sizes = Const(int32 [1, 1, 1, 2])
        dw = Conv2DBackpropFilter(x, sizes, dz, T=float, strides=list[1,1,1,1], padding="SAME")
        y = Add(dw, sums, T=float)
        """,
        {
            "x": np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1),
            "w": np.array([1, -1], np.float32).reshape(1, 1, 1, 2),
            "b": np.array([-1, 2], np.float32),
            "dr": np.arange(1, 9, dtype=np.float32).reshape(1, 2, 2, 2),
        },
        """
        c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
        z = BiasAdd(c, b, T=float, data_format="NHWC")
        r = Relu(z, T=float)
        dz = ReluGrad(dr, r, T=float)
        sums = BiasAddGrad(dz, T=float, data_format="NHWC")
        sizes = Const(int32 [1, 1, 1, 2])
        dw = Conv2DBackpropFilter(x, sizes, dz, T=float, strides=list[1,1,1,1], padding="SAME")
        y = Add(dw, sums, T=float)
        """,
    ),
}


def after(name: str, graph: Graph, feeds: Mapping[str, Any]) -> Graph:
    """The nodes that ``y`` needs after one pass."""
    specs = {Endpoint(key, 0): (DType.of_numpy(value.dtype), value.shape) for key, value in feeds.items()}
    relied_on = {f"{key}:0": value for key, value in feeds.items() if value.size == 1 and value.dtype.kind in "bf"}
    others = {row.name for row in PASSES} - {name}
    found = specialized(GraphState(graph, specs, relied_on, [Endpoint("y", 0)], (), without=others))
    assert [*found.applied] == [name]
    return Graph([item.node for item in found.plan.items.values()])


@pytest.mark.parametrize("name", PICTURES)
def test_the_result_of_a_pass(name: str) -> None:
    picture = PICTURES[name]
    given = with_functions(parse(picture.given), picture.functions)
    result = after(name, given, picture.feeds)
    assert_text(result, picture.result)
    fed = [node for node in given if node.name in picture.feeds]
    expected, found = (
        Session(graph, engine="reference", without={row.name for row in PASSES}).run("y", picture.feeds)[0]
        for graph in (given, Graph([*fed, *result]))
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02 if name in INEXACT else 0)


def test_each_pass_has_a_picture() -> None:
    assert PICTURES.keys() == {row.name for row in PASSES}
