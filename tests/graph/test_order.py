"""Orders: that of the original tool, and what the outputs need."""

from __future__ import annotations

import pytest

from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph
from pocketgraph.graph.order import descendants, on_branches, reachable, topological
from pocketgraph.graph.text_format import parse


def names(graph: Graph, **options: bool) -> list[str]:
    return [node.name for node in topological(graph, **options)]


def test_the_last_source_of_the_file_comes_first() -> None:
    graph = parse("""
        c = Add(a, b)
        a = Const(float 1)
        b = Const(float 2)
        d = Relu(c)
        e = Relu(b)
    """)
    assert names(graph) == ["b", "e", "a", "c", "d"]


def test_repeated_and_control_inputs_count() -> None:
    graph = parse("""
        y = Mul(x, x, ^c)
        x = Placeholder()
        c = NoOp(^x)
    """)
    assert names(graph) == ["x", "c", "y"]


LOOP = """
    start = Const(int32 0)
    enter = Enter(start)
    merge = Merge(enter, next)
    cond = LoopCond(merge)
    switch = Switch(merge, cond)
    exit = Exit(switch)
    next = NextIteration(switch:1)
"""


def test_a_while_loop_has_an_order() -> None:
    assert names(parse(LOOP)) == ["start", "enter", "merge", "cond", "switch", "next", "exit"]


def test_a_merge_waits_for_its_control_inputs() -> None:
    graph = parse("""
        a = Const(int32 0)
        merge = Merge(a, b, ^c)
        b = Relu(merge)
        c = Relu(a)
    """)
    assert names(graph) == ["a", "c", "merge", "b"]


CYCLE = """
    x = Placeholder()
    a = Add(x, b)
    b = Relu(a)
    c = Relu(b)
"""


def test_a_cycle_is_an_error_that_names_nodes() -> None:
    with pytest.raises(GraphError, match=r"3 nodes are in a cycle or behind one: 'a', 'b', 'c'"):
        topological(parse(CYCLE))
    assert names(parse(CYCLE), partial=True) == ["x"]


def test_an_unknown_input_is_an_error() -> None:
    with pytest.raises(GraphError, match=r"node 'a': unknown input node 'nothing:1'"):
        topological(parse("a = Relu(nothing:1)"))


def test_reachable_goes_backwards_and_stops() -> None:
    graph = parse("""
        file = Placeholder()
        image = Decode(file)
        x = Split(image, ^init)
        y = Relu(x:1)
        init = NoOp()
        dead = Relu(y)
    """)
    assert reachable(graph, ["y:0"]) == {"y", "x", "image", "file", "init"}
    assert reachable(graph, ["y"], stop=["x:0"]) == {"y", "x"}
    assert reachable(graph, ["y"], data_only=True) == {"y", "x", "image", "file"}
    assert reachable(graph, []) == set()


def test_descendants_go_forwards_and_stop() -> None:
    graph = parse("""
        a = Placeholder(dtype=float)
        b = Relu(a)
        c = NoOp(^b)
        d = Exit(b)
        e = Relu(d)
    """)
    assert descendants(graph, ["a"]) == {"b", "c", "d", "e"}
    assert descendants(graph, ["a"], lambda node: node.op != "Exit") == {"b", "c"}
    assert descendants(graph, ["e"]) == set()


def test_descendants_are_asked_once_whether_they_belong() -> None:
    text = "\n".join(f"n{i + 1} = AddV2(n{i}, n{i}, T=float)" for i in range(20))
    graph = parse(f"n0 = Placeholder(dtype=float, shape=[2])\n{text}")
    asked: list[str] = []
    assert descendants(graph, ["n0"], lambda node: asked.append(node.name) is None) == {f"n{i + 1}" for i in range(20)}
    assert sorted(asked) == sorted({*asked})


def test_a_node_loses_its_waits_for_some_and_nothing_else() -> None:
    node = parse("y = Mul(gone, x, ^gone, ^kept)")["y"]
    assert node.without_waits({"gone"}).inputs == ("gone", "x", "^kept")
    assert node.without_waits({"other"}) is node


def test_reachable_says_what_is_missing() -> None:
    graph = parse("softmax = Softmax(logits)")
    with pytest.raises(GraphError, match="no node 'sofmax'; did you mean 'softmax'"):
        reachable(graph, ["sofmax"])
    with pytest.raises(GraphError, match="node 'softmax': unknown input node 'logits'"):
        reachable(graph, ["softmax"])
    assert reachable(graph, ["softmax", "sofmax"], missing_ok=True) == {"softmax"}


def test_a_deep_graph_does_not_exhaust_the_stack() -> None:
    text = "n0 = Placeholder()\n" + "".join(f"n{i} = Relu(n{i - 1})\n" for i in range(1, 5000))
    graph = parse(text)
    assert len(topological(graph)) == len(reachable(graph, ["n4999"])) == 5000


def test_what_is_merged_in_a_branch_is_on_that_branch() -> None:
    """A Merge comes behind the first of its inputs: those of the others count too, and so do a loop's."""
    graph = parse("""
        x = Placeholder(dtype=float)
        p = Placeholder(dtype=bool)
        q = Placeholder(dtype=bool)
        way = Switch(x, p)
        inner = Switch(way:1, q)
        minus = Neg(inner)
        same = Identity(inner:1)
        both = Merge(minus, same)
        enter = Enter(both, frame_name="loop")
        round = Merge(enter, next)
        less = Less(round, round)
        go = LoopCond(less)
        turn = Switch(round, go)
        next = NextIteration(turn:1)
        left = Exit(turn)
        no = Relu(way)
        y = Merge(left, no)
    """)
    found = on_branches(graph)
    assert found["minus"] == {"p:0 1", "q:0 0"}
    assert found["both"] == found["round"] == found["next"] == found["left"] == {"p:0 1"}
    assert found["no"] == {"p:0 0"}
    assert found["y"] == found["way"] == frozenset()
