"""Graphs with gradients in them: what follows from shapes is known, and all of the work is one part."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from support import assert_close

random = np.random.default_rng(3)


def saliency() -> Graph:
    """The gradient of the largest response by the image, as TensorFlow writes it."""
    weights = np.random.default_rng(4).normal(size=(3, 3, 2, 4)).astype(np.float32)
    return Graph(
        [
            const("w", weights),
            *parse(
                """
        x = Placeholder(dtype=float, shape=[?,8,8,2])
        conv = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
        relu = Relu(conv, T=float)
        pool = MaxPool(relu, T=float, ksize=list[1,3,3,1], strides=list[1,2,2,1], padding="SAME")
        sizes = ShapeN(conv, pool, T=float, N=2)
        both = ConcatV2(pool, pool, last, T=float, Tidx=int32, N=2)
        last = Const(int32 3)
        off = ConcatOffset(last, sizes:1, sizes:1, N=2)
        dy = Square(both, T=float)
        first = Slice(dy, off:0, sizes:1, T=float, Index=int32)
        second = Slice(dy, off:1, sizes:1, T=float, Index=int32)
        sum = AddN(first, second, T=float, N=2)
        dpool = MaxPoolGrad(relu, pool, sum, T=float, ksize=list[1,3,3,1], strides=list[1,2,2,1], padding="SAME")
        drelu = ReluGrad(dpool, relu, T=float)
        group = NoOp(^drelu)
        held = Identity(drelu, ^group, T=float)
        of = ShapeN(x, w, T=float, N=2)
        y = Conv2DBackpropInput(of:0, w, held, T=float, strides=list[1,1,1,1], padding="SAME")
        """
            ),
        ]
    )


def test_a_gradient_by_the_image_is_one_part() -> None:
    feeds = {"x:0": random.normal(size=(2, 8, 8, 2)).astype(np.float32)}
    with Session(saliency()) as session, Session(saliency(), engine="reference") as exact:
        found, expected = session.run(["y", "both"], feeds), exact.run(["y", "both"], feeds)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, 1e-5)
        plan = str(session.plan(["y", "both"], feeds))
    assert plan.count("litert:") == 1
    assert "reference:" not in plan


def test_values_of_several_outputs_are_known_and_can_be_fetched() -> None:
    feeds = {"x:0": random.normal(size=(3, 8, 8, 2)).astype(np.float32)}
    with Session(saliency()) as session:
        one, two, offset = session.run(["sizes:0", "sizes:1", "off:1"], feeds)
    assert one.tolist() == [3, 8, 8, 4]
    assert two.tolist() == [3, 4, 4, 4]
    assert offset.tolist() == [0, 0, 0, 4]


def test_a_known_value_that_is_fed_is_what_was_fed() -> None:
    feeds = {"x:0": random.normal(size=(1, 8, 8, 2)).astype(np.float32), "off:1": np.array([0, 0, 0, 3], np.int32)}
    with Session(saliency()) as session, Session(saliency(), engine="reference") as exact:
        (found,), (expected,) = session.run("second", feeds), exact.run("second", feeds)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("rows", [2, 5])
def test_a_transposed_convolution_of_as_many_pictures_as_are_found(rows: int) -> None:
    graph = Graph(
        [
            const("w", random.normal(size=(3, 3, 16, 24)).astype(np.float32)),
            *parse(
                """
        x = Placeholder(dtype=float, shape=[8,6,6,24])
        score = Placeholder(dtype=float, shape=[8])
        zero = Const(float 0.0)
        good = Greater(score, zero, T=float)
        where = Where(good, T=bool)
        axis = Const(int32[1] [1])
        index = Squeeze(where, T=int64, squeeze_dims=list[1])
        none = Const(int32 0)
        kept = GatherV2(x, index, none, Tparams=float, Tindices=int64, Taxis=int32)
        size = Shape(kept, T=float)
        one = Const(int32[1] [1])
        begin = Const(int32[1] [0])
        count = StridedSlice(size, begin, one, one, T=int32, Index=int32, shrink_axis_mask=1)
        twelve = Const(int32 12)
        depth = Const(int32 16)
        shape = Pack(count, twelve, twelve, depth, T=int32, N=4)
        t = Conv2DBackpropInput(shape, w, kept, T=float, strides=list[1,2,2,1], padding="SAME")
        y = Relu(t, T=float)
        """
            ),
        ]
    )
    feeds = {"x:0": random.normal(size=(8, 6, 6, 24)).astype(np.float32), "score:0": np.full(8, -1, np.float32)}
    feeds["score:0"][:rows] = 1
    with Session(graph) as session, Session(graph, engine="reference") as exact:
        for _ in range(2):
            (found,) = session.run("y", feeds)
        assert found.shape == (rows, 12, 12, 16)
        assert_close(found, exact.run("y", feeds)[0], 1e-5)
        ran = {node.name: node.runs_on for node in session.profile("y", feeds).nodes}
    assert ran["t"] == "litert"
