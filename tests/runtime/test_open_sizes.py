"""Calls whose sizes change from run to run: after some plans, one with open sizes; for a size that stays, its own."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from graph_files import graph_names
from pocketgraph.formats import save
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.sizes import open_sizes
from recorded_runs import assert_repeats

TEXT = parse("""
    x = Placeholder(dtype=float, shape=[1, ?, 4])
    w = Const(float[4, 4] 0.25)
    s = Shape(x, T=float, out_type=int32)
    rows = Const(int32[2] [-1, 4])
    flat = Reshape(x, rows, T=float, Tshape=int32)
    h = MatMul(flat, w, T=float, transpose_a=false, transpose_b=false)
    back = Reshape(h, s, T=float, Tshape=int32)
    axis = Const(int32[1] [1])
    m = Mean(back, axis, T=float, Tidx=int32, keep_dims=true)
    y = Sub(back, m, T=float)
""")
PICTURE = parse("""
    x = Placeholder(dtype=float, shape=[1, ?, ?, 2])
    w = Const(float[3, 3, 2, 4] 0.25)
    y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
""")
LOOP = """
    w = Const(float[3, 3, 2, 4] 0.25)
    c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    zero = Const(int32 0)
    one = Const(int32 1, ^i)
    rounds = Const(int32 3, ^i)
    i_in = Enter(zero, T=int32, frame_name="rounds", is_constant=false, parallel_iterations=10)
    v_in = Enter(c, T=float, frame_name="rounds", is_constant=false, parallel_iterations=10)
    i = Merge(i_in, i_next, T=int32, N=2)
    v = Merge(v_in, v_next, T=float, N=2)
    less = Less(i, rounds, T=int32)
    goes_on = LoopCond(less)
    i_way = Switch(i, goes_on, T=int32)
    v_way = Switch(v, goes_on, T=float)
    more = AddV2(i_way:1, one, T=int32)
    curved = Tanh(v_way:1, T=float)
    i_next = NextIteration(more, T=int32)
    v_next = NextIteration(curved, T=float)
    y = Exit(v_way, T=float)
"""
LOOP_BEHIND_PICTURE = parse("x = Placeholder(dtype=float, shape=[1, ?, ?, 2])" + LOOP)
LINE = parse("""
    x = Placeholder(dtype=float, shape=[1, 1, ?, 2])
    w = Const(float[1, 3, 2, 4] 0.25)
    y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
""")
HERE = pathlib.Path(__file__).parent
NAMES = {folder: graph_names(HERE / folder) for folder in ("recurrent", "loops", "lookups")}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETGRAPH_WITHOUT", "resizable_programs")  # which would serve them first
    monkeypatch.setattr(open_sizes, "LEAST_SPENT", 0.0)


def text(length: int) -> Array:
    return np.random.default_rng(length).standard_normal((1, length, 4), np.float32)


def opened(session: Session) -> list[tuple[int | None, ...]]:
    """The shapes that plans leave open."""
    return [shape for key in session._calls.plans for _, (_, shape) in key.feeds if None in shape]


def asked(session: Session, values: Array) -> Array:
    (found,) = session.run(["y"], {"x": values})
    return np.asarray(found)


@pytest.mark.parametrize(("least_price", "planned"), [(0.0, 1), (np.inf, open_sizes.LEAST_PLANS)])
def test_after_some_lengths_one_plan_serves_all_others(
    least_price: float, planned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_sizes.SizedCalls, "price", 1e9)
    monkeypatch.setattr(open_sizes, "LEAST_PRICE", least_price)
    with Session(TEXT) as session, Session(TEXT, engine="reference") as reference:
        for length in (*range(2, 40), *range(2, 40)):
            np.testing.assert_allclose(asked(session, text(length)), asked(reference, text(length)), atol=1e-5)
        assert opened(session) == [(1, None, 4)]
        assert len(session._calls.plans) == planned + 1
        assert not opened(reference)


def test_a_length_that_stays_gets_a_plan_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sizes.SizedCalls, "price", 1e9)
    with Session(TEXT) as session:
        for length in range(2, 8):
            asked(session, text(length))
        before = len(session._calls.plans)
        expected = asked(session, text(30))
        assert len(session._calls.plans) == before
        monkeypatch.setattr(open_sizes.SizedCalls, "price", 0.0)
        asked(session, text(30))  # paid for with this run
        np.testing.assert_allclose(asked(session, text(30)), expected, atol=1e-5)
        assert len(session._calls.plans) == before + 1


def test_what_takes_longer_than_planning_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sizes.SizedCalls, "price", 1e-12)
    with Session(TEXT) as session:
        for length in range(2, 12):
            asked(session, text(length))
        assert len(session._calls.plans) == 8 + 1  # two lengths ran so, and were not planned for
        assert len(opened(session)) == 1


def test_another_size_that_begins_to_change_is_left_open_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sizes.SizedCalls, "price", 1e9)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, 4])
        axis = Const(int32[1] [1])
        m = Mean(x, axis, T=float, Tidx=int32, keep_dims=true)
        y = Sub(x, m, T=float)
    """)
    with Session(graph) as session:
        for length in range(2, 9):
            asked(session, text(length))
        for batch in (2, 3, 2):
            values = text(10 * batch).reshape(batch, 10, 4)
            np.testing.assert_allclose(asked(session, values), values - values.mean(axis=1, keepdims=True), atol=1e-6)
        assert opened(session) == [(1, None, 4), (None, None, 4)]


@pytest.mark.parametrize(("folder", "name"), [(f, n) for f in ("recurrent", "loops", "lookups") for n in NAMES[f]])
def test_equals_tensorflow_with_all_sizes_open(folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_open(calls: open_sizes.SizedCalls, key: CallKey) -> CallKey:
        return key._replace(feeds=tuple([(end, (dtype, (None,) * len(size))) for end, (dtype, size) in key.feeds]))

    monkeypatch.setattr(open_sizes.SizedCalls, "opened", all_open)
    monkeypatch.setattr(open_sizes.SizedCalls, "price", 1e9)
    monkeypatch.setattr(open_sizes, "LEAST_PLANS", 0)
    assert_repeats(HERE / folder, name)


@pytest.mark.parametrize(("graph", "is_open"), [(PICTURE, False), (LINE, True), (LOOP_BEHIND_PICTURE, True)])
def test_convolutions_over_planes_are_planned_for_unless_there_are_loops(
    graph: Graph, is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_sizes.SizedCalls, "price", 1e9)
    with Session(graph) as session, Session(graph, engine="reference") as reference:
        for width in range(4, 12):
            values = np.random.default_rng(width).standard_normal((1, 1 if graph is LINE else 5, width, 2), np.float32)
            np.testing.assert_allclose(asked(session, values), asked(reference, values), atol=1e-4)
        assert bool(opened(session)) == is_open


def test_it_is_switched_off_by_its_name() -> None:
    with Session(TEXT, without=["open_sizes"]) as session:
        for length in range(2, 12):
            asked(session, text(length))
        assert not opened(session)
        assert len(session._calls.plans) == 10


def test_a_later_process_does_likewise(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sizes.SizedCalls, "price", 1e9)
    save(TEXT, tmp_path / "text.pb")
    made = []
    for _ in range(2):
        with Session(tmp_path / "text.pb", cache_dir=tmp_path / "cache") as session:
            made.append([asked(session, text(length)) for length in range(2, 12)])
            assert opened(session) == [(1, None, 4)]
    for first, second in zip(*made, strict=True):
        np.testing.assert_array_equal(first, second)
