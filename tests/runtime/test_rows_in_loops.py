"""``x[i]`` in loops, switches of many ways there, and what is counted before a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loop_text import counted_loop
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.engines import region
from support import lines_taken

SUM_OF_ROWS = """
    x = Placeholder(dtype=float)
    n = Placeholder(dtype=int32, shape=[])
    start = Placeholder(dtype=int32, shape=[])
    zero = Const(float 0)
    i0 = Enter(start, T=int32, frame_name="f", is_constant=false)
    s0 = Enter(zero, T=float, frame_name="f", is_constant=false)
    n0 = Enter(n, T=int32, frame_name="f", is_constant=true)
    x0 = Enter(x, T=float, frame_name="f", is_constant=true)
    i = Merge(i0, i_next, N=2, T=int32)
    s = Merge(s0, s_next, N=2, T=float)
    more = Less(i, n0, T=int32)
    go = LoopCond(more)
    i_in = Switch(i, go, T=int32)
    s_in = Switch(s, go, T=float)
    one = Const(int32 1, ^i_in)
    ones = Const(int32 [1], ^i_in)
    following = AddV2(i_in:1, one, T=int32)
    begin = Pack(i_in:1, N=1, T=int32, axis=0)
    end = Pack(following, N=1, T=int32, axis=0)
    row = StridedSlice(x0, begin, end, ones, T=float, Index=int32, begin_mask=0, end_mask=0, shrink_axis_mask=1)
    axes = Const(int32 [0], ^i_in)
    total = Sum(row, axes, T=float, Tidx=int32, keep_dims=false)
    sum = AddV2(s_in:1, total, T=float)
    i_next = NextIteration(following, T=int32)
    s_next = NextIteration(sum, T=float)
    y = Exit(s_in, T=float)
"""


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(("start", "stop"), [(0, 3), (1, 1), (-2, 3), (-3, 0)])
def test_rows_by_their_number(engine: str | None, start: int, stop: int) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2
    with Session(parse(SUM_OF_ROWS), engine=engine) as session:
        feeds = {"x": rows, "n": np.int32(stop), "start": np.int32(start)}
        for _ in range(20):  # steps that are taken often are written out as code
            (found,) = session.run(["y"], feeds)
        assert found == sum(rows[i].sum() for i in range(start, stop))
        ops = {node.op for node in session.profile(["y"], feeds).nodes}
    assert "Pack" not in ops  # the number says it all


@pytest.mark.parametrize(("start", "stop"), [(2, 4), (-4, 0)])
def test_a_row_that_there_is_not(start: int, stop: int) -> None:
    with Session(parse(SUM_OF_ROWS)) as session, pytest.raises(RunError, match=r"row.*out of bounds"):
        session.run(["y"], {"x": np.ones((3, 2), np.float32), "n": np.int32(stop), "start": np.int32(start)})


def test_a_packed_number_that_is_fetched_is_still_made() -> None:
    graph = parse("""
        x = Placeholder(dtype=float)
        i = Placeholder(dtype=int32, shape=[])
        one = Const(int32 1)
        ones = Const(int32 [1])
        following = AddV2(i, one, T=int32)
        begin = Pack(i, N=1, T=int32, axis=0)
        end = Pack(following, N=1, T=int32, axis=0)
        row = StridedSlice(x, begin, end, ones, T=float, Index=int32, shrink_axis_mask=1)
    """)
    with Session(graph, engine="reference") as session:
        found, begin = session.run(["row", "begin"], {"x": np.eye(3, dtype=np.float32), "i": np.int32(1)})
        assert (found.tolist(), begin.tolist()) == ([0, 1, 0], [1])
        (found,) = session.run(["row"], {"x": np.eye(3, dtype=np.float32), "begin": [2], "following": 0})
        assert found.tolist() == [0, 0, 1]


WAYS = """
    x = Placeholder(dtype=float, shape=[2])
    n = Placeholder(dtype=int32, shape=[])
""" + counted_loop(
    "n",
    """
    three = Const(int32 3, ^i)
    which = FloorMod(i, three, T=int32)
    way = _SwitchN(v, which, T=float, num_outs=3)
    a = Neg(way, T=float)
    b = Square(way:1, T=float)
    c = Exp(way:2, T=float)
    other = _SwitchN(i, which, T=int32, num_outs=3)
    next = Merge(a, b, c, N=3, T=float)
    """,
)


@pytest.mark.parametrize("engine", ["reference", None])
def test_all_ways_of_a_switch_come_together(engine: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[region.LoopRegion] = []
    make = region.LoopRegion.__init__

    def noting(self: region.LoopRegion, *arguments: Any) -> None:
        make(self, *arguments)
        made.append(self)

    monkeypatch.setattr(region.LoopRegion, "__init__", noting)
    ways = (np.negative, np.square, np.exp)
    with Session(parse(WAYS), engine=engine) as session:
        for count in (0, 1, 2, 3, 7):
            expected = np.array([0.5, -0.25], np.float32)
            for turn in range(count):
                expected = ways[turn % 3](expected)
            (found,) = session.run(["y"], {"x": np.array([0.5, -0.25], np.float32), "n": np.int32(count)})
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert made
    assert all(loop.condition is not None for loop in made)  # one condition rules all of it


def test_two_ways_of_three_are_not_all() -> None:
    graph = parse(WAYS.replace("Merge(a, b, c, N=3, T=float)", "Merge(a, b, N=2, T=float)"))
    with Session(graph) as session:
        (found,) = session.run(["y"], {"x": np.ones(2, np.float32), "n": np.int32(2)})
        assert found.tolist() == [1, 1]
        with pytest.raises(RunError):
            session.run(["y"], {"x": np.ones(2, np.float32), "n": np.int32(3)})


def doubled(times: int) -> Graph:
    """The loop with a length that hangs on a number that was added to itself so often."""
    lines = ["d0 = Identity(k, T=int32)"]
    lines += [f"d{i + 1} = AddV2(d{i}, d{i}, T=int32)" for i in range(times)]
    lines += [f"none = Mul(d{times}, zero, T=int32)", "three = Const(int32 3)", "m = AddV2(none, k, T=int32)"]
    text = SUM_OF_ROWS.replace("n = Placeholder(dtype=int32, shape=[])", "n = AddV2(m, three, T=int32)")
    text = text.replace("zero = Const(float 0)", "nought = Const(float 0)").replace("Enter(zero", "Enter(nought")
    more = "\n".join(["zero = Const(int32 0)", "k = Placeholder(dtype=int32, shape=[])", *lines])
    return parse(text + more)


def test_what_many_ways_lead_to_is_looked_at_once() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)

    def lines_of_a_first_run(ways: int) -> int:
        def run() -> None:
            with Session(graph, cache_dir="") as session:
                (found,) = session.run(["y"], {"x": rows, "start": np.int32(0), "k": np.int32(0)})
            assert found == rows.sum()

        graph = doubled(ways)
        return lines_taken(run)

    lines_of_a_first_run(1)  # what is imported, once
    assert lines_of_a_first_run(20) < 3 * lines_of_a_first_run(10)  # not 2 to the power of 10 times as many


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rounds", [3, 40])
def test_counters_that_overflow_are_no_warnings(rounds: int) -> None:
    """The least number by -1 is itself, where a loop is unrolled and where its rounds are counted."""
    body = """
        less = Sub(least_in, i, T=int32)
        q = FloorDiv(less, sign_in, T=int32)
        f = Cast(q, SrcT=int32, DstT=float)
        next = AddV2(v, f, T=float)
    """
    text = f"""
        x = Placeholder(dtype=float, shape=[2])
        n = Const(int32 {rounds})
        least = Const(int32 -2147483648)
        sign = Const(int32 -1)
    """
    graph = parse(text + counted_loop("n", body, given={"least": "int32", "sign": "int32"}))
    with Session(graph) as session, Session(graph, engine="reference") as reference:
        feeds = {"x": np.ones(2, np.float32)}
        np.testing.assert_allclose(session.run("y", feeds), reference.run("y", feeds))
