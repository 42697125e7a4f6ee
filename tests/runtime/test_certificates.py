"""Compiled parts are compared with the reference engine: a lowering that is broken on purpose cannot answer."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import UsageError
from pocketgraph.formats import load, save
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache
from pocketgraph.litert.lowerings.nn import activations
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule, reproduction
from pocketgraph.runtime.feeding.default_tensors import default_fetches

STRAIGHT = parse("""
    x = Placeholder(dtype=float, shape=[?, 8])
    w = Const(float[8, 8] 2.0)
    m = MatMul(x, w, T=float)
    y = Relu(m, T=float)
""")
LATE = parse("""
    x = Placeholder(dtype=float, shape=[?, 256])
    s = Placeholder(dtype=float, shape=[?])
    zero = Const(float 0.0)
    keep = Greater(s, zero, T=float)
    where = Where(keep, T=bool)
    flat = Const(int32[1] [-1])
    place = Reshape(where, flat, T=int64, Tshape=int32)
    axis = Const(int32 0)
    rows = GatherV2(x, place, axis, Tparams=float, Tindices=int64, Taxis=int32)
    w = Const(float[256, 256] 2.0)
    m = MatMul(rows, w, T=float)
    y = Relu(m, T=float)
""")
LOOP = parse("""
    x = Placeholder(dtype=float, shape=[4, 256])
    limit = Placeholder(dtype=float, shape=[])
    start = Enter(x, T=float, frame_name="loop")
    bound = Enter(limit, T=float, frame_name="loop", is_constant=true)
    w = Const(float[256, 256] 0.0125)
    weights = Enter(w, T=float, frame_name="loop", is_constant=true)
    value = Merge(start, next, T=float, N=2)
    axes = Const(int32[2] [0, 1])
    axes_in = Enter(axes, T=int32, frame_name="loop", is_constant=true)
    largest = Max(value, axes_in, T=float, Tidx=int32)
    go = Less(largest, bound, T=float)
    goes = LoopCond(go)
    switch = Switch(value, goes, T=float)
    inside = Identity(switch:1, T=float)
    m = MatMul(inside, weights, T=float)
    r = Relu(m, T=float)
    next = NextIteration(r, T=float)
    y = Exit(switch, T=float)
""")
ONES = np.ones((4, 8), "f4")  # m is 16 everywhere, and a broken rectifier gives 6


@pytest.fixture(autouse=True)
def without_budget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However long comparisons take, those that no test puts off are made at once."""
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: True)  # which depends on what the machine does
    check_schedule.finish()
    yield
    check_schedule.finish()


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rectifiers end at 6."""
    monkeypatch.setitem(activations.ACTIVATIONS, "Relu", "RELU6")


def feeds_of(name: str) -> tuple[Any, dict[str, Array], Array]:
    """A graph with its feeds, and the right answer, worked out by hand in NumPy."""
    if name == "straight":
        return STRAIGHT, {"x": ONES}, np.full((4, 8), 16, "f4")
    if name == "late":
        x, chosen = np.ones((5, 256), "f4"), np.array([1, -1, 1, 1, -1], "f4")
        return LATE, {"x": x, "s": chosen}, np.full((3, 256), 512, "f4")
    x = np.full((4, 256), 1, "f4")  # each round makes 3.2 times as much: 1, 3.2, 10.24
    return LOOP, {"x": x, "limit": np.float32(5)}, np.full((4, 256), 3.2**2, "f4")


def verdicts(folder: pathlib.Path) -> list[str]:
    """What the entries of a cache say."""
    noted = [json.loads(path.read_text()).get(cache.CERTIFICATE, {}) for path in folder.glob("*.json")]
    return [said for each in noted for said in each.values()]


@pytest.mark.parametrize("name", ["straight", "late", "loop"])
@pytest.mark.parametrize("check", ["first", "always"])
def test_a_wrong_part_does_not_answer(name: str, check: str, broken: None, tmp_path: pathlib.Path) -> None:
    graph, feeds, right = feeds_of(name)
    with Session(graph, check="never", cache_dir="") as session:
        assert not np.allclose(session.run("y", feeds)[0], right)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with Session(graph, check=check, cache_dir=tmp_path) as session:
            for _ in range(12):
                np.testing.assert_allclose(session.run("y", feeds)[0], right, rtol=1e-5)
            assert "wrong" in [verdict for _, verdict in session.checked_parts()]
    (message,) = (str(one.message) for one in told)
    assert "gives other numbers" in message
    assert re.search("node '|part from '", message)
    assert verdicts(tmp_path) == ["wrong"]
    with Session(graph, check="never", cache_dir=tmp_path) as later:  # once found wrong, it is not used any more
        np.testing.assert_allclose(later.run("y", feeds)[0], right, rtol=1e-5)


@pytest.mark.parametrize("name", ["straight", "late", "loop"])
def test_a_warm_cache_without_a_certificate(name: str, broken: None, tmp_path: pathlib.Path) -> None:
    graph, feeds, right = feeds_of(name)
    with Session(graph, check="never", cache_dir=tmp_path) as session:
        assert not np.allclose(session.run("y", feeds)[0], right)
    assert verdicts(tmp_path) == []
    with pytest.warns(RuntimeWarning, match="gives other numbers"), Session(graph, cache_dir=tmp_path) as later:
        np.testing.assert_allclose(later.run("y", feeds)[0], right, rtol=1e-5)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_sums_of_50_000_products_are_certified_in_whatever_order_they_are_added() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 128, 128, 3])
        w = Const(float[128, 128, 3, 2] 0.5)
        y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
    """)
    picture = np.broadcast_to(np.float32([0.98, 0.392, 0.0118]), (1, 128, 128, 3))
    with Session(graph, check="always", cache_dir="") as session:
        for _ in range(3):
            np.testing.assert_allclose(session.run("y", {"x": picture})[0], np.sum(picture) / 2, rtol=1e-3)
        assert [verdict for _, verdict in session.checked_parts()] == ["right"]


@pytest.mark.parametrize("name", ["straight", "late", "loop"])
def test_a_right_part_is_certified_once(name: str, tmp_path: pathlib.Path) -> None:
    graph, feeds, right = feeds_of(name)
    for compared in (["right"], []):
        with Session(graph, cache_dir=tmp_path) as session:
            for _ in range(3):
                np.testing.assert_allclose(session.run("y", feeds)[0], right, rtol=1e-5)
            assert [verdict for _, verdict in session.checked_parts()] == compared
    assert verdicts(tmp_path) == ["right"]


def test_a_long_comparison_waits_until_the_process_is_idle(
    broken: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)
    monkeypatch.setattr(check_schedule, "LOOK", 60)
    with Session(STRAIGHT, cache_dir=tmp_path) as session:
        assert session.run("y", {"x": ONES})[0].max() == 6
        assert verdicts(tmp_path) == ["later"]
        with pytest.warns(RuntimeWarning, match="gives other numbers"):
            check_schedule.finish()
        assert session.run("y", {"x": ONES})[0].min() == 16
    assert verdicts(tmp_path) == ["wrong"]


@pytest.mark.parametrize("name", ["straight", "late"])
def test_a_warm_part_that_takes_long_to_compare(
    name: str, broken: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, feeds, right = feeds_of(name)
    monkeypatch.setattr(check_schedule, "LOOK", 60)
    with Session(graph, check="never", cache_dir=tmp_path) as session:
        session.run("y", feeds)
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)
    with Session(graph, cache_dir=tmp_path) as later:
        for _ in range(4):
            assert later.run("y", feeds)[0].max() == 6
        with pytest.warns(RuntimeWarning, match="gives other numbers"):
            check_schedule.finish()
        np.testing.assert_allclose(later.run("y", feeds)[0], right, rtol=1e-5)


def test_the_thread_does_what_waits(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)
    monkeypatch.setattr(check_schedule, "LOOK", 0.01)
    monkeypatch.setattr(check_schedule, "_thread", None)
    with Session(STRAIGHT, cache_dir=tmp_path) as session:
        session.run("y", {"x": ONES})
    thread = check_schedule._thread
    assert thread is None or thread.daemon
    if thread is not None:
        thread.join(30)
    assert verdicts(tmp_path) == ["right"]


@pytest.mark.parametrize("is_starved", [True, False])
def test_a_process_that_others_keep_from_working_is_not_idle(is_starved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    switches = iter(range(0, 10**6, 100))
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)
    monkeypatch.setattr(check_schedule, "LOOK", 0.01)
    monkeypatch.setattr(check_schedule, "BUSY", 1e9)
    monkeypatch.setattr(check_schedule, "_thread", None)
    monkeypatch.setattr(check_schedule, "_preempted", (lambda: next(switches)) if is_starved else lambda: 7)
    done = threading.Event()
    check_schedule.add(done.set, 0.0)
    assert done.wait(0.5 if is_starved else 60) is not is_starved
    check_schedule.finish()
    assert done.is_set()


def test_the_reproduction_holds_the_part_and_its_feeds(broken: None, tmp_path: pathlib.Path) -> None:
    with pytest.warns(RuntimeWarning, match="to report it, send"), Session(STRAIGHT, cache_dir=tmp_path) as session:
        session.run("y", {"x": ONES})
    (model,) = (tmp_path / reproduction.FOLDER).glob("*.pb")
    with np.load(model.with_suffix(".npz")) as kept:
        feeds = {name: kept[name] for name in kept.files}
    np.testing.assert_array_equal(*feeds.values(), ONES)
    graph = load(str(model))
    with Session(graph, engine="reference") as session:
        assert session.run(default_fetches(graph), feeds)[0].min() == 16
    assert model.stat().st_mode & 0o077 == 0


def test_few_reproductions_of_bounded_size(
    broken: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduction, "MOST", 2)
    for rows in range(1, 5):
        with pytest.warns(RuntimeWarning, match="gives other"), Session(STRAIGHT, cache_dir=tmp_path) as session:
            session.run("y", {"x": np.ones((rows, 8), "f4")})
    assert len(list((tmp_path / reproduction.FOLDER).iterdir())) == 4
    monkeypatch.setattr(reproduction, "LARGEST", 10)
    with pytest.warns(RuntimeWarning) as told, Session(STRAIGHT, cache_dir=tmp_path) as session:
        session.run("y", {"x": np.ones((9, 8), "f4")})
    assert "send" not in str(told[0].message)


def full(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


def test_a_disk_that_takes_neither_certificate_nor_reproduction(
    broken: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(STRAIGHT, check="never", cache_dir=tmp_path) as session:
        session.run("y", {"x": ONES})
    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setattr(cache, "created", full)
    monkeypatch.setattr(reproduction, "created", full)
    monkeypatch.setattr(cache, "_warned", [])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with Session(STRAIGHT, cache_dir=tmp_path) as later:
            for _ in range(3):
                np.testing.assert_array_equal(later.run("y", {"x": ONES})[0], np.full((4, 8), 16, "f4"))
    said = [str(one.message) for one in told]
    assert len(said) == 2
    assert any("No space left" in text for text in said)
    assert any("gives other numbers" in text and "send" not in text for text in said)
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(before)


def test_without_a_cache_each_process_compares(broken: None) -> None:
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="gives other numbers"), Session(STRAIGHT, cache_dir="") as session:
            assert session.run("y", {"x": ONES})[0].min() == 16


def test_what_is_not_finite_is_no_proof(broken: None, tmp_path: pathlib.Path) -> None:
    """Kernels of LiteRT may lose NaN; feeds that hold some neither prove nor disprove a part."""
    feeds = ONES.copy()
    feeds[0, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Session(STRAIGHT, cache_dir=tmp_path) as session:
            session.run("y", {"x": feeds})
            assert [verdict for _, verdict in session.checked_parts()] == ["unclear"]
    with pytest.warns(RuntimeWarning, match="gives other numbers"), Session(STRAIGHT, cache_dir=tmp_path) as session:
        assert session.run("y", {"x": ONES})[0].min() == 16


def test_other_feeds_of_the_first_session_are_right_too(broken: None, tmp_path: pathlib.Path) -> None:
    """What agrees by chance on the first feeds is certified; ``always`` compares each run."""
    small = np.full((4, 8), 0.001, "f4")
    with Session(STRAIGHT, check="always", cache_dir=tmp_path) as session:
        session.run("y", {"x": small})
        with pytest.warns(RuntimeWarning, match="gives other numbers"):
            assert session.run("y", {"x": ONES})[0].min() == 16
    assert verdicts(tmp_path) == ["wrong"]


def test_another_name_is_an_error() -> None:
    with pytest.raises(UsageError, match="no check 'sometimes'"):
        Session(STRAIGHT, check="sometimes")


def test_a_warm_start_with_certificates_costs_nothing(tmp_path: pathlib.Path) -> None:
    """It reads them with the entry: what compares is not even imported."""
    save(STRAIGHT, path := str(tmp_path / "model.pb"))
    code = (
        "import sys, numpy, pocketgraph\n"
        "with pocketgraph.Session(sys.argv[1], cache_dir=sys.argv[2]) as session:\n"
        "    session.run('y', {'x': numpy.ones((4, 8), 'f4')})\n"
        "print(sum('certificates' in name for name in sys.modules))\n"
    )
    command = [sys.executable, "-c", code, path, str(tmp_path / "cache")]
    imported = [int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(2)]
    assert imported[0] > 0
    assert imported[1] == 0


def test_several_threads_at_once(broken: None) -> None:
    with warnings.catch_warnings(record=True) as told, Session(STRAIGHT, cache_dir="") as session:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: session.run("y", {"x": ONES})[0].min(), range(64)))
    assert answers == [16] * 64
    assert len(told) == 1


WIDE_PART = parse("""
    x = Placeholder(dtype=float, shape=[?, 512])
    a = Relu(x, T=float)
    b = Tanh(a, T=float)
    c = AddV2(a, b, T=float)
    axes = Const(int32[2] [0, 1])
    y = Sum(c, axes, T=float, Tidx=int32)
""")


def test_a_comparison_takes_no_more_than_the_memory_limit() -> None:
    x = np.linspace(-1, 1, 512 * 512, dtype="f4").reshape(512, 512)  # a megabyte; the reference engine takes three more
    right = np.sum(np.maximum(x, 0) + np.tanh(np.maximum(x, 0)), dtype="f8")
    for megabytes, verdict in [(64, "right"), (3, "unclear")]:  # what is imported meanwhile counts for the first
        with Session(WIDE_PART, check="always", cache_dir="", memory_limit=megabytes << 20) as session:
            tracemalloc.start()
            try:
                np.testing.assert_allclose(session.run("y", {"x": x})[0], right, rtol=1e-5)
                check_schedule.finish()
                assert tracemalloc.get_traced_memory()[1] < megabytes << 20
            finally:
                tracemalloc.stop()
            assert [said for _, said in session.checked_parts()] == [verdict]
