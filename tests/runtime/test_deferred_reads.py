"""Reads of reference variables behind an assignment, against TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.planning.session_variables import _written, defer_reads

COUNTER = """
    x = Placeholder(dtype=float, shape=[2])
    v = VariableV2(dtype=float, shape=[2])
    first = Const(float [1, 2])
    start = Assign(v, first, T=float)
    v/read = Identity(v, T=float)
    two = Const(float 2)
    early = Mul(v/read, two, T=float)
    up = AssignAdd(v, x, ^early, T=float)
    y = Identity(v/read, ^up, T=float)
    z = Sub(y, v/read, T=float)
    both = Sub(x, v/read, ^y, T=float)
"""
"""early = v * 2; with control_dependencies([early]): up = v += x; with control_dependencies([up]): y = identity(v)."""


@pytest.mark.parametrize("engine", [None, "reference"])
def test_who_waits_for_an_assignment_sees_the_new_value(engine: str | None) -> None:
    # TensorFlow 1.15: early [2, 4], y [11, 22]; in the next run with x = [1, 1], y is [12, 23].
    with Session(parse(COUNTER), engine=engine) as session:
        session.run([], targets="start")
        early, y = session.run(["early", "y"], {"x": np.array([10, 20], np.float32)})
        assert (early.tolist(), y.tolist()) == ([2, 4], [11, 22])
        assert session.run("y", {"x": np.ones(2, np.float32)})[0].tolist() == [12, 23]


@pytest.mark.parametrize("engine", [None, "reference"])
def test_what_depends_on_the_new_value_uses_it_too(engine: str | None) -> None:
    with Session(parse(COUNTER), engine=engine) as session:
        session.run([], targets="start")
        z, both = session.run(["z", "both"], {"x": np.array([10, 20], np.float32)})
        assert z.tolist() == [0, 0]  # both sides are read after the assignment
        assert both.tolist() == [-1, -2]


def with_reads(graph: Graph, *fetches: str) -> Graph:
    endpoints = [Endpoint(name, 0) for name in fetches]
    return defer_reads(graph, needed(graph, frozenset(), endpoints, ()), frozenset())[0]


def test_the_writers_of_a_variable_have_an_order_that_no_hash_seed_changes() -> None:
    """Else a plan's key is another one in each process."""
    rows = [f"r{at} = RefIdentity(v, T=float)\nup{at} = AssignAdd(r{at}, x, T=float)" for at in range(9)]
    graph = parse("\n".join(["x = Placeholder(dtype=float)", "v = VariableV2(dtype=float, shape=[])", *rows]))
    items = needed(graph, frozenset(), [Endpoint(f"up{at}", 0) for at in range(9)], ())
    expected = [name for name in items if name.startswith("up")]
    assert _written(items, ["v"])["v"] in (expected, expected[::-1])


def test_who_does_not_wait_keeps_the_read_that_is_there() -> None:
    graph = parse(COUNTER)
    assert with_reads(graph, "early") is graph
    changed = with_reads(graph, "early", "y")
    assert changed["early"].inputs[0] == "v/read"
    assert changed["y"].inputs == ("v/read/after/y", "^up")
    assert changed["v/read/after/y"].inputs == ("v", "^up")


def test_a_fed_read_is_what_was_fed() -> None:
    with Session(parse(COUNTER)) as session:
        session.run([], targets="start")
        feeds = {"x": np.array([10, 20], np.float32), "v/read": np.array([5, 5], np.float32)}
        assert session.run("y", feeds)[0].tolist() == [5, 5]


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_moving_average_follows_the_trained_value(engine: str | None) -> None:
    """ExponentialMovingAverage.apply under a control dependency on the training step; decay 0.5."""
    graph = parse("""
        g = Placeholder(dtype=float, shape=[])
        v = VariableV2(dtype=float, shape=[])
        ema = VariableV2(dtype=float, shape=[])
        v/read = Identity(v, T=float)
        ema/read = Identity(ema, T=float)
        four = Const(float 4)
        rate = Const(float 1)
        half = Const(float 0.5, ^train)
        set_v = Assign(v, four, T=float)
        set_ema = Assign(ema, four, T=float)
        train = ApplyGradientDescent(v, rate, g, T=float)
        gap = Sub(ema/read, v/read, ^train, T=float)
        part = Mul(gap, half, T=float)
        step = AssignSub(ema, part, T=float)
    """)
    with Session(graph, engine=engine) as session:
        session.run([], targets=["set_v", "set_ema"])
        averages = [float(session.run("step", {"g": np.float32(1)})[0]) for _ in range(3)]
    assert averages == [3.5, 2.75, 1.875]  # v is 3, 2, 1


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_fetched_read_is_what_the_run_leaves(engine: str | None) -> None:
    """TensorFlow 1.15, with and without its optimizer: a read hands on the variable's memory."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        v = VariableV2(dtype=float, shape=[2])
        first = Const(float [1, 2])
        start = Assign(v, first, T=float)
        v/read = Identity(v, T=float)
        kept = StopGradient(v/read, T=float)
        quarter = Const(float 0.25)
        before = Add(v/read, quarter, T=float)
        up = AssignAdd(v, x, ^before, T=float)
        half = Const(float 0.5)
        late = Add(v/read, half, ^up, T=float)
    """)
    feeds = {"x": np.array([10, 20], np.float32)}
    with Session(graph, engine=engine) as session:
        session.run([], targets="start")
        for fetches, right in (
            (["v/read", "up"], [[11, 22], [11, 22]]),
            (["up", "kept", "before"], [[21, 42], [21, 42], [11.25, 22.25]]),
            (["late", "v/read", "before"], [[31.5, 62.5], [31, 62], [21.25, 42.25]]),
            (["v/read", "before"], [[31, 62], [31.25, 62.25]]),
        ):
            assert [found.tolist() for found in session.run(fetches, feeds)] == right
        given = session.run(["v/read", "up"], {**feeds, "v/read": np.zeros(2, np.float32)})
        assert [found.tolist() for found in given] == [[0, 0], [41, 82]]


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_fetched_view_of_a_read_is_what_the_run_leaves(engine: str | None) -> None:
    """TensorFlow 1.15, with and without its optimizer: these views hand on the variable's memory."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        v = VariableV2(dtype=float, shape=[2])
        first = Const(float [1, 2])
        start = Assign(v, first, T=float)
        v/read = Identity(v, T=float)
        shape = Const(int32 [1, 2])
        row = Reshape(v/read, shape, T=float, Tshape=int32)
        back = Squeeze(row, T=float, squeeze_dims=[])
        last = Const(int32 -1)
        column = ExpandDims(back, last, T=float, Tdim=int32)
        kept = StopGradient(row, T=float)
        two = Const(float 2)
        twice = Mul(row, two, T=float)
        up = AssignAdd(v, x, ^twice, ^back, ^column, T=float)
    """)
    feeds = {"x": np.array([10, 20], np.float32)}
    with Session(graph, engine=engine) as session:
        session.run([], targets="start")
        for fetches, right in (
            (["row", "up"], [[[11, 22]], [11, 22]]),
            (["back", "up"], [[21, 42], [21, 42]]),
            (["column", "up", "twice"], [[[31], [62]], [31, 62], [[42, 84]]]),
            (["kept", "twice", "up"], [[[41, 82]], [[62, 124]], [41, 82]]),
            (["up", "row", "back", "column", "twice"], [[51, 102], [[51, 102]], [51, 102], [[51], [102]], [[82, 164]]]),
            (["row", "twice"], [[[51, 102]], [[102, 204]]]),
        ):
            assert [found.tolist() for found in session.run(fetches, feeds)] == right
        given = session.run(["row", "up"], {**feeds, "v/read": np.zeros(2, np.float32)})
        assert [found.tolist() for found in given] == [[[0, 0]], [61, 122]]


@pytest.mark.parametrize(("adds", "left"), [(True, [[11, 22]]), (False, [[1, 2]])])
def test_a_fetched_view_beside_a_branch_that_writes(adds: bool, left: list[list[float]]) -> None:
    graph = parse("""
        adds = Placeholder(dtype=bool, shape=[])
        v = VariableV2(dtype=float, shape=[2])
        first = Const(float [1, 2])
        start = Assign(v, first, T=float)
        v/read = Identity(v, T=float)
        shape = Const(int32 [1, 2])
        row = Reshape(v/read, shape, T=float, Tshape=int32)
        more = Const(float [10, 20])
        way = Switch(more, adds, T=float)
        up = AssignAdd(v, way:1, T=float)
        same = Identity(way, T=float)
        done = Merge(same, up, T=float, N=2)
        after = Reshape(v, shape, ^done, T=float, Tshape=int32)
    """)
    with Session(graph) as session:
        session.run([], targets="start")
        row, _, after = session.run(["row", "done", "after"], {"adds": np.bool_(adds)})
        assert row.shape == (1, 2)
        assert after.tolist() == left


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_node_that_has_the_name_of_an_added_read_stays(engine: str | None) -> None:
    """TensorFlow 1.15 gives these values."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        v = VariableV2(dtype=float, shape=[2])
        first = Const(float [1, 2])
        start = Assign(v, first, T=float)
        v/read = Identity(v, T=float)
        v/read/early = Const(float [7, 7])
        v/read/after/late = Const(float [5, 5])
        up = AssignAdd(v, x, T=float)
        late = Add(v/read, v/read/after/late, ^up, T=float)
        z = Neg(v/read/early, T=float)
    """)
    feeds = {"x": np.array([10, 20], np.float32)}
    with Session(graph, engine=engine) as session:
        session.run([], targets="start")
        found = session.run(["v/read", "v/read/early", "z", "up"], feeds)
        assert [value.tolist() for value in found] == [[11, 22], [7, 7], [-7, -7], [11, 22]]
        found = session.run(["late", "v/read/after/late"], feeds)
        assert [value.tolist() for value in found] == [[26, 47], [5, 5]]


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(("op", "taken", "then"), [("AssignAdd", 2.5, 2.5), ("Assign", 0.5, 0.5)])
def test_an_assignment_on_a_branch_is_seen_too(engine: str | None, op: str, taken: float, then: float) -> None:
    """TensorFlow 1.15: v = 2; y is 2.5 and 0.5 after the branch with x = 0.5, and stays so after the other one."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[])
        v = VariableV2(dtype=float, shape=[])
        two = Const(float 2)
        zero = Const(float 0)
        start = Assign(v, two, T=float)
        v/read = Identity(v, T=float)
        positive = Greater(x, zero, T=float)
        variable = RefSwitch(v, positive, T=float)
        value = Switch(x, positive, T=float)
        up = {op}(variable:1, value:1, T=float)
        done = Merge(value, up, T=float, N=2)
        y = AddV2(v/read, zero, ^done, T=float)
    """)
    with Session(graph, engine=engine) as session:
        session.run([], targets="start")
        assert session.run("y", {"x": np.float32(0.5)})[0] == taken
        assert session.run("y", {"x": np.float32(-1)})[0] == then
