"""Calls of ever new sizes that one program serves: run without a plan for each, right in several threads, and nothing
is kept of each for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.planning.session_plans import SessionPlans
from pocketgraph.runtime.planning.sizes.open_sizes import SizedCalls
from pocketgraph.runtime.planning.sizes.served_calls import AnySizes

WEIGHTS = np.random.default_rng(5).standard_normal((4, 4)).round(3).astype(np.float32)
HEAD = f"""
    x = Placeholder(dtype=float, shape=[?, 4])
    w = Const(float[4, 4] {WEIGHTS.tolist()})
    h = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
"""
ROWS = parse(f"{HEAD} y = Tanh(h, T=float)")
POSITIONS = parse(f"""
    {HEAD}
    s = Shape(x, T=float, out_type=int32)
    zero = Const(int32[1] [0])
    one = Const(int32[1] [1])
    steps = StridedSlice(s, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
    start = Const(int32 0)
    step = Const(int32 1)
    places = Range(start, steps, step, Tidx=int32)
    numbers = Cast(places, SrcT=int32, DstT=float)
    waves = Sin(numbers, T=float)
    last = Const(int32 -1)
    column = ExpandDims(waves, last, T=float, Tdim=int32)
    moved = Add(h, column, T=float)
    v = MatMul(moved, w, T=float, transpose_a=false, transpose_b=false)
    y = Tanh(v, T=float)
""")
SCALED = parse(f"""
    {HEAD}
    share = Placeholder(dtype=float, shape=[])
    scaled = Mul(h, share, T=float)
    y = Tanh(scaled, T=float)
""")


def of_rows(x: Array) -> Array:
    """What ROWS computes, in float64."""
    found: Array = np.tanh(x.astype(np.float64) @ WEIGHTS)
    return found


def of_positions(x: Array) -> Array:
    """What POSITIONS computes, in float64."""
    moved = x.astype(np.float64) @ WEIGHTS + np.sin(np.arange(len(x)))[:, None]
    found: Array = np.tanh(moved @ WEIGHTS)
    return found


BOTH = pytest.mark.parametrize(("graph", "expected"), [(ROWS, of_rows), (POSITIONS, of_positions)])


def rows(count: int, seed: int = 0) -> Array:
    return np.random.default_rng((count, seed)).standard_normal((count, 4)).astype(np.float32)


def assert_right(session: Session, x: Array, expected: Callable[[Array], Array]) -> None:
    (found,) = session.run(["y"], {"x": x})
    np.testing.assert_allclose(found, expected(x), rtol=1e-4, atol=1e-5)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The shapes of the calls that were looked up."""
    found: list[tuple[Any, ...]] = []
    prepare = SessionPlans.prepare

    def noted(self: SessionPlans, call: Any, *more: Any, **named: Any) -> Any:
        found.append(call.key.shapes)
        return prepare(self, call, *more, **named)

    monkeypatch.setattr(SessionPlans, "prepare", noted)
    return found


@pytest.fixture(autouse=True)
def _runs_take_less_than_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SizedCalls, "price", 1e9)  # else a busy machine's times decide


@BOTH
def test_new_sizes_are_run_without_being_looked_up(
    graph: Graph, expected: Callable[[Array], Array], planned: list[tuple[Any, ...]]
) -> None:
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for count in (5, 7, 9, 12, 6, 30, 31, 9, 9, 9):
            assert_right(session, rows(count, seed=len(planned)), expected)
    assert planned == [((5, 4),), ((7, 4),)]


def test_sizes_and_values_that_the_program_is_not_for_are_looked_up(planned: list[tuple[Any, ...]]) -> None:
    with Session(ROWS, cache_dir="", without=["first_on_reference"]) as session:
        for count in (5, 7, 9):
            assert_right(session, rows(count), of_rows)
        looked_up = len(planned)
        assert_right(session, rows(1), of_rows)  # at which tensors are repeated
        assert len(planned) == looked_up + 1
        (found,) = session.run(["y"], {"x": rows(8).tolist()})  # no array
        np.testing.assert_allclose(found, of_rows(rows(8)), rtol=1e-4, atol=1e-5)
        assert len(planned) == looked_up + 2
        with pytest.raises(Exception, match=r"Cannot feed value of shape \(8, 5\) for Tensor 'x:0'"):
            session.run(["y"], {"x": np.zeros((8, 5), np.float32)})
        with pytest.raises(Exception, match="float32"):
            session.run(["y"], {"x": np.zeros((8, 4), np.complex64)})
    with pytest.raises(Exception, match="closed"):
        session.run(["y"], {"x": rows(14)})


def test_values_that_decide_what_runs_are_asked_for_each_time() -> None:
    with Session(SCALED, cache_dir="", without=["first_on_reference"]) as session:
        shares = (1.0, 1.0, 1.0, 0.0, 0.5, 1.0, 0.5, 0.25, 0.0, 1.0)
        for count, share in zip((5, 7, 9, 11, 12, 13, 14, 15, 16, 17), shares, strict=True):
            x = rows(count)
            (found,) = session.run(["y"], {"x": x, "share": np.float32(share).reshape(())})
            expected = np.tanh(x.astype(np.float64) @ WEIGHTS * share)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_numbers_of_half_the_size_are_computed_in_whole_ones_of_any_size(planned: list[tuple[Any, ...]]) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=half, shape=[?, 4])
        w = Const(half[4, 4] {WEIGHTS.tolist()})
        y = MatMul(x, w, T=half, transpose_a=false, transpose_b=false)
    """)
    halves = WEIGHTS.astype(np.float16).astype(np.float64)
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for count in (5, 7, 9, 12, 6, 9):
            x = rows(count).astype(np.float16)
            (found,) = session.run(["y"], {"x": x})
            assert found.dtype == np.float16
            np.testing.assert_allclose(found, x.astype(np.float64) @ halves, rtol=2e-3, atol=2e-3)
    assert planned == [((5, 4),), ((7, 4),)]


@BOTH
def test_threads_that_feed_different_sizes_get_their_own_numbers(
    graph: Graph, expected: Callable[[Array], Array]
) -> None:
    failures: list[BaseException] = []
    with Session(graph, cache_dir="", threads=1) as session:

        def work(first: int) -> None:
            try:
                for count in range(first, first + 120, 3):
                    assert_right(session, rows(2 + count % 60, seed=first), expected)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(first,)) for first in (3, 4, 5)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert not failures


@BOTH
def test_of_a_thousand_sizes_little_is_kept(graph: Graph, expected: Callable[[Array], Array]) -> None:
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for count in range(4, 1004):
            x = rows(count)
            if count % 50:
                session.run(["y"], {"x": x})
            else:
                assert_right(session, x, expected)
        calls = session._plans.calls
        (runs,) = {id(each): each for each in calls.any_sizes.values()}.values()
        assert isinstance(runs, AnySizes)
        assert len(calls.plans) <= 4
        assert len(calls) <= 4
        part: Any = runs.served.for_all.executables[0]
        assert 0 < len(part._resizable._ready) <= 64
