"""Calls like the one before take the shortest way; all others must not."""

from __future__ import annotations

import pathlib
import sys
import threading

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.runtime import resolved_call
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.planning.call_cache import MOST_SPELLINGS

TWO = parse("""
    x = Placeholder(dtype=float)
    p = Placeholder(dtype=float)
    d = Sub(x, p, T=float)
    m = Mul(x, p, T=float)
""")
ONE = parse("""
    x = Placeholder(dtype=float)
    y = Neg(x, T=float)
    z = Abs(x, T=float)
""")
CURVE = parse("""
    x = Placeholder(dtype=float, shape=[1024])
    s = Square(x, T=float)
    n = Neg(s, T=float)
    e = Exp(n, T=float)
    a = Add(e, x, T=float)
    y = Tanh(a, T=float)
""")
DROPOUT = parse("""
    x = Placeholder(dtype=float, shape=[3])
    keep = Placeholder(dtype=bool, shape=[])
    s = Switch(x, keep, T=float)
    n = Neg(s, T=float)
    y = Merge(n, s:1, N=2, T=float)
""")


@pytest.fixture(params=["litert", "reference"])
def one(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Session:
    session = Session(ONE, engine=None if request.param == "litert" else "reference", cache_dir=tmp_path)
    for _ in range(4):
        session.run(["y"], {"x:0": np.ones(3, np.float32)})
    return session


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_values_count_and_nothing_is_shared(one: Session) -> None:
    given = floats(1, 2, 3)
    (first,) = one.run(["y"], {"x:0": given})
    (second,) = one.run(["y"], {"x:0": floats(4, 5, 6)})
    given[:] = 9
    np.testing.assert_array_equal(first, [-1, -2, -3])
    np.testing.assert_array_equal(second, [-4, -5, -6])
    first[:] = 0
    np.testing.assert_array_equal(one.run(["y"], {"x:0": floats(4, 5, 6)})[0], [-4, -5, -6])


def test_other_shapes_types_and_layouts(one: Session) -> None:
    for shape in ((3,), (1, 3), (3, 1), (), (0,), (3,)):
        np.testing.assert_array_equal(one.run(["y"], {"x:0": np.full(shape, 2, np.float32)})[0], np.full(shape, -2.0))
    np.testing.assert_array_equal(one.run(["y"], {"x:0": floats(1, 2, 3).astype(">f4")})[0], [-1, -2, -3])
    np.testing.assert_array_equal(one.run(["y"], {"x:0": [1, 2, 3]})[0], [-1, -2, -3])
    np.testing.assert_array_equal(one.run(["y"], {"x:0": floats(1, 0, 2, 0, 3, 0)[::2]})[0], [-1, -2, -3])
    np.testing.assert_array_equal(one.run(["y"], {"x:0": np.array([1, 2, 3], np.int32)})[0], [-1, -2, -3])
    with pytest.raises(RunError, match="float"):
        one.run(["y"], {"x:0": np.array([1j, 2, 3])})


def test_other_names(one: Session) -> None:
    given = {"x:0": floats(-1, 2, -3)}
    np.testing.assert_array_equal(one.run(["z"], given)[0], [1, 2, 3])
    np.testing.assert_array_equal(one.run(["y", "z"], given)[1], [1, 2, 3])
    np.testing.assert_array_equal(one.run(("z",), given)[0], [1, 2, 3])
    np.testing.assert_array_equal(one.run("z", given)[0], [1, 2, 3])
    np.testing.assert_array_equal(one.run(["y"], {"x": floats(1, 1, 1)})[0], [-1, -1, -1])
    with pytest.raises(RunError, match="w"):
        one.run(["y"], {"w:0": floats(1, 2, 3)})
    with pytest.raises(RunError, match="x"):
        one.run(["y"], {})
    with pytest.raises(RunError, match="mapping"):
        one.run(["y"], [floats(1, 2, 3)])  # type: ignore[arg-type]


def test_a_list_of_names_that_the_caller_changes(one: Session) -> None:
    names, given = ["y"], {"x:0": floats(-1, 2, -3)}
    one.run(names, given)
    names[0] = "z"
    np.testing.assert_array_equal(one.run(names, given)[0], [1, 2, 3])
    names.append("y")
    assert len(one.run(names, given)) == 2


def test_targets_are_not_left_out(one: Session) -> None:
    given = {"x:0": floats(1, 2, 3)}
    assert len(one.run(["y"], given, targets=["z"])) == 1
    with pytest.raises(RunError, match="nothing_of_this_name"):
        one.run(["y"], given, targets=["nothing_of_this_name"])


@pytest.mark.parametrize("engine", [None, "reference"])
def test_feeds_in_another_order_are_the_same_feeds(engine: str | None, tmp_path: pathlib.Path) -> None:
    session = Session(TWO, engine=engine, cache_dir=tmp_path)
    x, p = floats(5, 6), floats(1, 2)
    for _ in range(4):
        np.testing.assert_array_equal(session.run(["d"], {"x:0": x, "p:0": p})[0], [4, 4])
        np.testing.assert_array_equal(session.run(["d"], {"p:0": p, "x:0": x})[0], [4, 4])
        np.testing.assert_array_equal(session.run(["d"], {"p:0": x, "x:0": p})[0], [-4, -4])


@pytest.mark.parametrize("engine", [None, "reference"])
def test_numbers_that_may_be_switches(engine: str | None, tmp_path: pathlib.Path) -> None:
    session = Session(TWO, engine=engine, cache_dir=tmp_path)
    x = floats(5, 6)
    for share in (0.5, 0.25, 1.0, 0.5, 0.0, 1.0, 1.0, 0.75, 0.0, 0.0):
        for _ in range(2):
            result = session.run(["m", "d"], {"x:0": x, "p:0": np.float32(share).reshape(())})
            np.testing.assert_array_equal(result[0], x * np.float32(share))
            np.testing.assert_array_equal(result[1], x - np.float32(share))


@pytest.mark.parametrize("engine", [None, "reference"])
def test_minus_zero_is_another_number_than_zero(engine: str | None, tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[])\n y = Reciprocal(x, T=float)")
    for first in (0.0, -0.0):
        session = Session(graph, engine=engine, cache_dir=tmp_path)
        for value in (first, -first, 0.0, -0.0, first):
            np.testing.assert_array_equal(session.run("y", {"x": np.float32(value)})[0], np.copysign(np.inf, value))


@pytest.mark.parametrize("engine", [None, "reference"])
def test_switches_are_looked_at_each_time(engine: str | None, tmp_path: pathlib.Path) -> None:
    session = Session(DROPOUT, engine=engine, cache_dir=tmp_path)
    for keep in (True, True, True, False, False, False, True, False):
        (result,) = session.run(["y"], {"x:0": floats(1, 2, 3), "keep:0": np.array(keep)})
        np.testing.assert_array_equal(result, [1, 2, 3] if keep else [-1, -2, -3])


def test_a_closed_session_does_not_run_again(one: Session) -> None:
    given = {"x:0": floats(1, 2, 3)}
    one.run(["y"], given)
    one.close()
    with pytest.raises(RunError, match="closed"):
        one.run(["y"], given)


@pytest.mark.parametrize("engine", [None, "reference"])
def test_spellings_of_a_call_do_not_pile_up(engine: str | None, tmp_path: pathlib.Path) -> None:
    """Each list of names is a spelling of its own, also where they mean the same."""
    with Session(ONE, engine=engine, cache_dir=tmp_path) as session:
        x = floats(1, 2)
        for number in range(3 * MOST_SPELLINGS):
            names = ["y" if number >> bit & 1 else "y:0" for bit in range(12)]
            assert session.run(names, {"x": x})[-1].tolist() == [-1, -2]
        assert len(session._calls) <= MOST_SPELLINGS


def test_threads_that_spell_calls_in_ever_new_ways() -> None:
    problems: list[BaseException] = []
    x, interval = floats(1, 2), sys.getswitchinterval()

    def call(first: int) -> None:
        try:
            for number in range(first, 4 * MOST_SPELLINGS, 8):
                session.run(["y" if number >> bit & 1 else "y:0" for bit in range(12)], {"x": x})
        except BaseException as error:
            problems.append(error)

    with Session(ONE, engine="reference") as session:
        threads = [threading.Thread(target=call, args=(first,)) for first in range(8)]
        sys.setswitchinterval(1e-6)  # so that each is interrupted anywhere
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    assert not problems, problems[0]


TEXTS = parse("""
    x = Placeholder(dtype=string, shape=[?])
    p = Placeholder(dtype=string, shape=[])
    y = StringLower(x, encoding="")
    z = StringJoin(p, x, N=2, separator="")
""")


@pytest.mark.parametrize("engine", [None, "reference"])
def test_texts_take_the_short_way_and_are_looked_at_each_time(engine: str | None, tmp_path: pathlib.Path) -> None:
    def words(*items: object) -> np.ndarray:
        found = np.empty(len(items), object)
        found[:] = items
        return found

    part = np.array(b"p", object)
    with Session(TEXTS, engine=engine, cache_dir=tmp_path) as session:
        for _ in range(4):
            given = words(b"A", b"b")
            (lower,) = session.run(["y"], {"x": given})
            assert lower.tolist() == [b"a", b"b"]
            assert given.tolist() == [b"A", b"b"]
        assert session._calls.last is not None
        assert session._calls.last(["y"], {"x": words(b"C", b"D")}, ()) is not None
        for other in (words(b"C", "D"), words(bytearray(b"C"), b"D"), words(np.bytes_(b"C"), b"D")):
            assert session._calls.last(["y"], {"x": other}, ()) is None
            assert session.run(["y"], {"x": other})[0].tolist() == [b"c", b"d"]
        with pytest.raises(RunError, match="holds int"):
            session.run(["y"], {"x": words(b"C", 5)})
        for _ in range(4):
            assert session.run(["z"], {"x": words(b"A", b"b"), "p": part})[0].tolist() == [b"pA", b"pb"]
        with pytest.raises(RunError, match="holds NoneType"):
            session.run(["z"], {"x": words(b"A", b"b"), "p": np.array(None, object)})


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("is_on", [True, False])
def test_direct_calls_are_switched_off_by_their_name(
    is_on: bool, earlier: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process that compiles the part, and in one that finds it in the cache."""
    asked: list[object] = []
    direct = PlainRunner.direct
    monkeypatch.setattr(PlainRunner, "direct", lambda self, places: asked.append(places) or direct(self, places))
    if earlier:
        with Session(CURVE, cache_dir=tmp_path) as session:
            session.run("y", {"x:0": np.ones(1024, np.float32)})
    with Session(CURVE, cache_dir=tmp_path, without=[] if is_on else ["direct_calls"]) as session:
        for number in range(20):
            x = np.linspace(-1, 1, 1024, dtype=np.float32) + np.float32(number)
            (y,) = session.run("y", {"x:0": x})
            np.testing.assert_allclose(y, np.tanh(np.exp(-x * x) + x), rtol=1e-5, atol=1e-6)
    assert bool(asked) == is_on


def test_names_of_feeds_are_looked_up_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    found = FeedSpec.of

    def noted(graph: Graph, endpoint: Endpoint, label: str) -> FeedSpec:
        looked_up.append(label)
        return found(graph, endpoint, label)

    monkeypatch.setattr(resolved_call.FeedSpec, "of", staticmethod(noted))
    with Session(TWO, engine="reference") as session:
        for size in range(2, 9):
            x = np.arange(size, dtype=np.float32)
            (d,) = session.run(["d"], {"x": x, "p": np.ones(size, np.float32)})
            np.testing.assert_array_equal(d, x - 1)
        assert sorted(looked_up) == ["p", "x"]
        (d,) = session.run(["d"], {"p": floats(1, 1), "x:0": floats(3, 4)})  # another order, another spelling
        np.testing.assert_array_equal(d, [2, 3])
        with pytest.raises(RunError, match="the graph wants float"):
            session.run(["d"], {"x": np.array(["a", "b"]), "p": floats(1, 1)})
