"""Cutting graphs into parts: every part can run as one step, whatever the graph and whatever can be lowered."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.graph import Graph, Node, Shape, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.frames import ROOT
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.engines.step_program import Run, StepProgram
from pocketgraph.runtime.planning.partitioning import CutPart, is_worth_it, partition


def plan_of(graph: Graph, feeds: list[str], fetches: list[str]) -> Plan:
    fed = frozenset(Endpoint(name, 0) for name in feeds)
    items = needed(graph, fed, [Endpoint(name, 0) for name in fetches], ())
    return Plan(items, fed, dict.fromkeys(items, ROOT), {}, FunctionLibrary(graph))


def as_call(part: CutPart, plan: Plan, index: int) -> PartCall:
    """The part as a step that runs its nodes on a program of their own; what they wait for is the outer one's care."""
    members = {*part.nodes, "one"} & plan.items.keys()
    items = {name: plan.items[name]._replace(control=()) for name in members}
    inside = StepProgram(Graph(), part.inputs, part.outputs, library=FunctionLibrary(Graph()), items=items)
    return PartCall(
        Node(f"part {index}", "Part"),
        frozenset(part.nodes),
        part.inputs,
        part.outputs,
        lambda *values: tuple(inside.run(values, Run({}, None, 0))),
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, set[str], list[str]]:
    """A random graph of additions, some of them waiting for others; which can be lowered; and what is fetched."""
    count = draw(st.integers(2, 14))
    nodes = [Node("x", "Placeholder", (), {"dtype": FLOAT}), const("one", np.float32(1.0))]
    names = ["x", "one"]
    for index in range(count):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names[-5:]))
        waits = draw(st.lists(st.sampled_from(names[2:]), max_size=1)) if len(names) > 2 else []
        names.append(f"n{index}")
        nodes.append(Node(f"n{index}", "Add", [a, b, *(f"^{w}" for w in waits)], {"T": FLOAT}))
    able = set(draw(st.lists(st.sampled_from(names[2:]), unique=True)))
    fetches = draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3))
    return Graph(nodes), able, fetches


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_a_cut_graph_computes_the_same(drawn: tuple[Graph, set[str], list[str]]) -> None:
    graph, able, fetches = drawn
    plan = plan_of(graph, ["x"], fetches)
    static = {"one"} & plan.items.keys()
    wanted = [Endpoint(name, 0) for name in fetches]
    parts = [part for part in partition(plan, able, static, wanted) if part.outputs]
    assert all(set(part.nodes) <= able for part in parts)
    lowered = [name for part in parts for name in part.nodes]
    assert len(lowered) == len(set(lowered))
    segments = [as_call(part, plan, index) for index, part in enumerate(parts)]
    values = [np.array([2.0, 3.0], np.float32)]
    plain = StepProgram(graph, [Endpoint("x", 0)], wanted, library=plan.library).run(values, Run({}, None, 0))
    for kept in (segments, segments[::2], segments[1::2]):  # the caller may leave parts to the reference engine
        in_parts = StepProgram(graph, [Endpoint("x", 0)], wanted, library=plan.library, parts=kept).run(
            values, Run({}, None, 0)
        )
        for a, b in zip(plain, in_parts, strict=True):
            np.testing.assert_array_equal(a, b)


def test_everything_able_is_one_part_with_constants_left_out() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        c = Const(float [1.0, 2.0])
        a = Add(x, c, T=float)
        b = Mul(a, a, T=float)
        d = Sub(b, x, T=float)
    """)
    (part,) = partition(plan_of(graph, ["x"], ["d"]), {"a", "b", "d"}, {"c"}, [Endpoint("d", 0)])
    assert part == CutPart(("a", "b", "d"), (Endpoint("x", 0),), (Endpoint("d", 0),))


def test_a_way_out_and_back_parts_it() -> None:
    """a → outside → d and a → d: one part of a and d would wait for itself."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        a = Neg(x, T=float)
        outside = Betainc(a, a, a, T=float)
        d = Sub(a, outside, T=float)
    """)
    parts = partition(plan_of(graph, ["x"], ["d"]), {"a", "d"}, set(), [Endpoint("d", 0)])
    assert [part.nodes for part in parts] == [("a",), ("d",)]
    assert parts[1].inputs == (Endpoint("a", 0), Endpoint("outside", 0))


def test_little_parts_are_not_worth_a_call() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2,2])
        a = Neg(x, T=float)
        b = Identity(a, T=float)
        c = MatMul(x, x, T=float)
    """)
    plan = plan_of(graph, ["x"], ["b", "c"])
    assert not is_worth_it(CutPart(("a", "b"), (), ()), plan, lambda _: Shape((1000, 1000)))
    assert is_worth_it(CutPart(("c",), (), ()), plan, lambda _: Shape((1,)))


def test_a_few_small_operations_are_not_worth_a_call_but_over_large_tensors_they_are() -> None:
    graph = parse("""
        x = Placeholder(dtype=float)
        a = Abs(x, T=float)
        b = Neg(a, T=float)
        c = Tanh(b, T=float)
    """)
    plan = plan_of(graph, ["x"], ["c"])
    part = CutPart(("a", "b", "c"), (), ())
    assert not is_worth_it(part, plan, lambda _: Shape((8, 8)))
    assert is_worth_it(part, plan, lambda _: Shape((64, 64)))
