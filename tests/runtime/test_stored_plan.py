"""Plans of an earlier process: found again with their parts, and only for what they were made for."""

import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from loop_text import counted_loop
from pocketgraph.errors import RunError
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.planning import planner

WEIGHTS = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
GRAPH = f"""
    x = Placeholder(dtype=float, shape=[?, 4])
    w = Const(float {WEIGHTS.tolist()})
    first = MatMul(x, w, T=float)
    axis = Const(int32 1)
    running = CumulativeLogsumexp(first, axis, T=float, Tidx=int32)
    second = MatMul(running, w, T=float)
    y = Relu(second, T=float)
"""


def sums(x: np.ndarray) -> np.ndarray:
    return np.logaddexp.accumulate(x @ WEIGHTS, axis=1)


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(sums(x) @ WEIGHTS, 0)


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    save(parse(GRAPH), tmp_path / "model.pb")
    return tmp_path / "model.pb"


def run(model: pathlib.Path, rows: int, fetch: str = "y") -> np.ndarray:
    x = np.linspace(0.5, 1.5, rows * 4, dtype=np.float32).reshape(rows, 4)
    with Session(model, cache_dir=model.parent / "cache") as session:
        (result,) = session.run([fetch], {"x": x})
        if fetch == "y":
            np.testing.assert_allclose(result, expected(x), rtol=1e-5, atol=1e-6)
        return result


def refuse(*_: Any) -> Any:
    raise AssertionError("it was planned again")


def test_the_next_session_does_not_plan(model: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(model, 2)
    monkeypatch.setattr(planner, "compile_parts", refuse)
    np.testing.assert_array_equal(run(model, 2), first)


def test_a_kept_plan_takes_a_scalar(tmp_path: pathlib.Path) -> None:
    path, rng = tmp_path / "scaled.pb", np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[64,512])
        rate = Placeholder(dtype=float, shape=[])
        product = MatMul(x, w, T=float)
        y = Mul(product, rate, T=float)
    """)
    weights = rng.normal(size=(512, 512)).astype(np.float32)
    save(Graph([*graph, const("w", weights)]), path)
    x = rng.normal(size=(64, 512)).astype(np.float32)
    for _ in range(3):
        with Session(path, cache_dir=tmp_path / "cache") as session:
            (result,) = session.run(["y"], {"x": x, "rate": np.float32(0.5)})
        np.testing.assert_allclose(result, x @ weights * 0.5, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("rows", "fetch"), [(3, "y"), (2, "second"), (2, "running")])
def test_another_request_is_another_plan(
    model: pathlib.Path, monkeypatch: pytest.MonkeyPatch, rows: int, fetch: str
) -> None:
    run(model, 2)
    monkeypatch.setattr(planner, "compile_parts", refuse)
    with pytest.raises(AssertionError, match="planned again"):
        run(model, rows, fetch)


def test_another_model_is_another_plan(model: pathlib.Path) -> None:
    run(model, 2)
    save(parse(GRAPH.replace("Relu", "Neg")), model)
    x = np.ones((2, 4), np.float32)
    with Session(model, cache_dir=model.parent / "cache") as session:
        np.testing.assert_allclose(session.run(["y"], {"x": x})[0], -sums(x) @ WEIGHTS, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", ["cut", "flipped", "gone"])
def test_damage_is_met_with_a_new_plan(model: pathlib.Path, change: str) -> None:
    run(model, 2)
    for file in sorted((model.parent / "cache").iterdir()):
        data = bytearray(file.read_bytes())
        if change == "gone" and file.suffix == ".tflite":
            file.unlink()
        elif change == "cut":
            file.write_bytes(data[: len(data) // 2])
        elif data:
            data[len(data) // 2] ^= 0xFF
            file.write_bytes(data)
    run(model, 2)
    run(model, 2)


def test_times_and_description_are_whole_all_the_same(model: pathlib.Path) -> None:
    run(model, 2)
    x = np.ones((2, 4), np.float32)
    with Session(model, cache_dir=model.parent / "cache") as session:
        session.run(["y"], {"x": x})
        assert {node.op for node in session.profile(["y"], {"x": x}).nodes} >= {"MatMul", "CumulativeLogsumexp"}
        assert {part.runs_on for part in session.plan(["y"], {"x": x}).parts} == {"litert", "reference"}


def test_the_next_session_reads_neither_the_graph_nor_kernels_it_does_not_run(
    model: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(model, 2)
    monkeypatch.setattr("pocketgraph.formats.load", refuse)
    monkeypatch.setattr("pocketgraph.runtime.planning.planner.prepare", refuse)
    np.testing.assert_array_equal(run(model, 2), first)
    program = (
        "import sys, numpy\n"
        "before = set(sys.modules)  # NumPy 1 imports all of itself\n"
        "import pocketgraph\n"
        f"session = pocketgraph.Session({str(model)!r}, cache_dir={str(model.parent / 'cache')!r})\n"
        "session.run(['y'], {'x': numpy.linspace(0.5, 1.5, 8, dtype='f4').reshape(2, 4)})\n"
        "print(*(name for name in set(sys.modules) - before if name.startswith(('pocketgraph', 'numpy.random'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pocketgraph.runtime.planning.stored_plan" in loaded
    assert not loaded & {
        "pocketgraph.runtime.planning.planner",
        "pocketgraph.runtime.planning.graph_passes",
        "pocketgraph.kernels.shapes",
        "pocketgraph.kernels.nn.convolution",
        "pocketgraph.graph.opdefs",
        "numpy.random",
    }


def test_strings_are_looked_at_each_time(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "strings.pb"
    save(parse("x = Placeholder(dtype=string, shape=[?])\ny = EncodeBase64(x)"), path)
    for _ in range(2):
        with Session(path, cache_dir=tmp_path / "cache") as session:
            for value in (b"a", "a"):
                assert session.run(["y"], {"x": np.array([value], object)})[0].tolist() == [b"YQ"]
            with pytest.raises(RunError, match="holds int"):
                session.run(["y"], {"x": np.array([1], object)})


def test_targets_run_from_a_kept_plan_and_share_the_state(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "counter.pb"
    graph = """
        v = VariableV2(dtype=float, shape=[2])
        zero = Const(float [0.0, 0.0])
        init = Assign(v, zero, T=float)
        step = Placeholder(dtype=float, shape=[2])
        more = AssignAdd(v, step, T=float)
        now = Identity(v, T=float)
    """
    save(parse(graph), path)
    for _ in range(2):
        with Session(path, cache_dir=tmp_path / "cache") as session:
            session.run([], targets="init")
            for _ in range(2):
                session.run([], {"step": np.ones(2, np.float32)}, targets=["more"])
            assert session.run("now")[0].tolist() == [2, 2]


def test_what_one_session_may_do_another_may_not(tmp_path: pathlib.Path) -> None:
    (tmp_path / "note").write_text("hello")
    path, cache = tmp_path / "reader.pb", tmp_path / "cache"
    save(parse("name = Placeholder(dtype=string, shape=[])\ny = ReadFile(name)"), path)
    feeds = {"name": np.array(b"note", object)}
    for _ in range(2):
        with Session(path, cache_dir=cache, allow="files", files_dir=tmp_path) as session:
            assert session.run("y", feeds)[0].item() == b"hello"
        with Session(path, cache_dir=cache) as session, pytest.raises(RunError, match="'y' \\(ReadFile\\)"):
            session.run("y", feeds)


def test_a_fed_output_of_a_compiled_node(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "split.pb"
    graph = """
        x = Placeholder(dtype=float, shape=[2, 4])
        axis = Const(int32 1)
        parts = Split(axis, x, T=float, num_split=2)
        y = AddV2(parts, parts:1, T=float)
    """
    save(parse(graph), path)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for _ in range(2):
        with Session(path, cache_dir=tmp_path / "cache") as session:
            (y,) = session.run(["y"], {"x": x, "parts:0": np.ones((2, 2), np.float32)})
            np.testing.assert_array_equal(y, x[:, 2:] + 1)


LOOP = f"""
    x = Placeholder(dtype=float, shape=[2, 4])
    w = Const(float {WEIGHTS.tolist()})
    limit = Placeholder(dtype=int32, shape=[])
""" + counted_loop(
    "limit",
    """
    half = Const(float 0.5, ^v)
    mul = MatMul(v, w_in, T=float)
    tanh = Tanh(mul, T=float)
    next = Mul(tanh, half, T=float)
    """,
    given={"w": "float"},
)


def test_dynamic_parts_are_not_looked_for_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.runtime.engines import dynamic_part_search
    from pocketgraph.runtime.planning.dynamic_part import DynamicPart

    save(parse(LOOP), tmp_path / "loop.pb")
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    results = []
    for again in (False, True):
        if again:
            monkeypatch.setattr(dynamic_part_search, "dynamic_parts", refuse)
            monkeypatch.setattr(planner, "compile_parts", refuse)
            monkeypatch.setattr(DynamicPart, "graph", property(refuse))
        with Session(tmp_path / "loop.pb", cache_dir=tmp_path / "cache") as session:
            results.append(session.run(["y"], {"x": x, "limit": np.array(7, np.int32)})[0])
    expected = x
    for _ in range(7):
        expected = np.tanh(expected @ WEIGHTS) * np.float32(0.5)
    np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(*results)


def test_a_dynamic_part_that_takes_a_truth_value_is_found_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = LOOP.replace(
        "next = Mul(tanh, half, T=float)",
        """last = GreaterEqual(loop/i_now, loop/rounds, T=int32)
    size = Const(int32[1] [2], ^i)
    ended = Fill(size, last, T=bool, index_type=int32)
    halved = Mul(tanh, half, T=float)
    next = Select(ended, v, halved, T=float)""",
    )
    assert text != LOOP
    text = text.replace("[2, 4]", "[1, 4]").replace("int32[1] [2]", "int32[1] [1]")
    save(parse(text), tmp_path / "loop.pb")
    x = np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4)
    results = []
    for again in (False, True):
        if again:
            monkeypatch.setattr(planner, "compile_parts", refuse)
        with Session(tmp_path / "loop.pb", cache_dir=tmp_path / "cache") as session:
            results.append(session.run(["y"], {"x": x, "limit": np.array(5, np.int32)})[0])
    expected = x
    for _ in range(5):
        expected = np.tanh(expected @ WEIGHTS) * np.float32(0.5)
    np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(*results)
