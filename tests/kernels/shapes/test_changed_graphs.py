"""Shapes of a graph of which some nodes were changed: what was known before is taken over where it still holds."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import Inferred, infer

FLOAT = DType.named("float")
GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[?, 4])
    rows = Shape(x, T=float, out_type=int32)
    axis = Const(int32 0)
    twice = ConcatV2(x, x, axis, N=2, T=float, Tidx=int32)
    y = Relu(twice, T=float)
    z = Neg(y, T=float)
    side = Abs(x, T=float)
    handle = VarHandleOp(dtype=float, shape=[7, 2])
    passed = Identity(handle, T=resource)
    read = ReadVariableOp(passed, dtype=float)
    odd = MatMul(x, read, T=float)
""")
FEEDS = {"x:0": (FLOAT, Shape((3, 4)))}


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that are looked at."""
    names: list[str] = []
    walk: Any = vars(sys.modules["pocketgraph.kernels.shapes.infer"])["Walk"]
    visit = walk.visit

    def noted(self: Any, node: Node) -> None:
        names.append(node.name)
        visit(self, node)

    monkeypatch.setattr(walk, "visit", noted)
    return names


def assert_equal(graph: Graph, found: Inferred, expected: Inferred) -> None:
    assert found.problems == expected.problems
    for node in graph:
        ref = f"{node.name}:0"
        assert found.shapes(node.name) == expected.shapes(node.name)
        assert found.dtype(ref) == expected.dtype(ref)
        np.testing.assert_equal(found.value(ref), expected.value(ref))


def changed(**nodes: Node) -> Graph:
    return GRAPH.replace([nodes.get(node.name, node) for node in GRAPH])


def test_the_same_graph_is_not_looked_at(visited: list[str]) -> None:
    before = infer(GRAPH, FEEDS)
    visited.clear()
    again = infer(GRAPH, FEEDS, before=before)
    assert visited == []
    assert again.shape("z").known == (6, 4)
    assert set(again.problems) == {"odd"}


def test_what_follows_a_change_is_looked_at(visited: list[str]) -> None:
    before = infer(GRAPH, FEEDS)
    visited.clear()
    graph = changed(axis=const("axis", np.int32(1)))
    again = infer(graph, FEEDS, before=before)
    assert visited == ["axis", "twice", "y", "z"]
    assert_equal(graph, again, infer(graph, FEEDS))
    assert again.shape("z").known == (3, 8)


def test_a_change_that_makes_no_difference_ends_there(visited: list[str]) -> None:
    before = infer(GRAPH, FEEDS)
    visited.clear()
    graph = changed(axis=const("axis", np.int32(0)), y=Node("y", "Relu6", ["twice"], {"T": FLOAT}))
    again = infer(graph, FEEDS, before=before)
    assert visited == ["axis", "y"]
    assert_equal(graph, again, infer(graph, FEEDS))


def test_a_variable_of_another_shape() -> None:
    before = infer(GRAPH, FEEDS)
    graph = changed(handle=Node("handle", "VarHandleOp", [], {"dtype": FLOAT, "shape": Shape((4, 2))}))
    again = infer(graph, FEEDS, before=before)
    assert_equal(graph, again, infer(graph, FEEDS))
    assert again.shape("odd").known == (3, 2)
    assert not again.problems


def test_new_nodes_and_a_chain_of_changes() -> None:
    before = infer(GRAPH, FEEDS)
    more = GRAPH.replace([*GRAPH, Node("more", "Sqrt", ["z"], {"T": FLOAT})])
    then = infer(more, FEEDS, before=before)
    last = more.replace([const("axis", np.int32(1)) if node.name == "axis" else node for node in more])
    assert_equal(last, infer(last, FEEDS, before=then), infer(last, FEEDS))
    assert_equal(last, infer(last, FEEDS, before=before), infer(last, FEEDS))


def test_loops() -> None:
    text = """
        start = Const(float [1, 2])
        enter = Enter(start, frame_name="loop", T=float)
        merge = Merge(enter, next, N=2, T=float)
        limit = Const(float 9)
        held = Enter(limit, frame_name="loop", is_constant=true, T=float)
        less = Less(merge, held, T=float)
        axis = Const(int32 0)
        all = All(less, axis)
        cond = LoopCond(all)
        switch = Switch(merge, cond, T=float)
        body = Add(switch:1, switch:1, T=float)
        next = NextIteration(body, T=float)
        exit = Exit(switch, T=float)
        y = Neg(exit, T=float)
    """
    graph = parse(text)
    other = parse(text.replace("[1, 2]", "[1, 2, 3]"))
    mixed = graph.replace([other["start"] if node.name == "start" else node for node in graph])
    before = infer(graph, {}, outputs=["y"])
    assert_equal(mixed, infer(mixed, {}, outputs=["y"], before=before), infer(mixed, {}, outputs=["y"]))


def test_nodes_that_are_alike_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that share attributes, and of whose inputs the same is known."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 4])
        w = Placeholder(dtype=float, shape=[4])
        last = Const(int32 -1)
        first = Const(int32 0)
        a = ExpandDims(x, last, T=float, Tdim=int32)
        s = Shape(x, T=float, out_type=int32)
        p = Pack(s, s, T=int32, N=2, axis=0)
        c = Sum(x, last, T=float, Tidx=int32, keep_dims=true)
    """)
    more = [
        graph["a"].replace(name="like_a"),
        graph["a"].replace(name="of_another_axis", inputs=["x", "first"]),
        graph["a"].replace(name="of_another_shape", inputs=["w", "last"]),
        graph["c"].replace(name="like_c"),
        graph["c"].with_attrs(keep_dims=False).replace(name="of_other_attributes"),
        graph["s"].replace(name="like_s"),
        graph["p"].replace(name="like_p", inputs=["like_s", "s"]),
    ]
    graph = graph.replace([*graph, *more])
    feeds = {"x:0": (FLOAT, Shape((None, 4)))}
    names: list[str] = []
    walk: Any = vars(sys.modules["pocketgraph.kernels.shapes.infer"])["Walk"]
    shapes = walk._shapes
    monkeypatch.setattr(walk, "_shapes", lambda self, call: names.append(call.node.name) or shapes(self, call))
    found = infer(graph, feeds)
    assert sorted(set(names)) == sorted(
        ["x", "w", "a", "s", "p", "c", "of_another_axis", "of_another_shape", "of_other_attributes"]
    )
    for node in graph:
        alone = infer(graph, feeds, outputs=[node.name])
        assert found.shapes(node.name) == alone.shapes(node.name)
        assert found.numbers(node.name) == alone.numbers(node.name)
    assert [str(found.shape(name)) for name in ("like_a", "of_another_axis", "of_another_shape")] == [
        "[?,4,1]", "[1,?,4]", "[4,1]",
    ]  # fmt: skip
    assert [str(found.shape(name)) for name in ("like_c", "of_other_attributes")] == ["[?,1]", "[?]"]
