"""TensorFlow 2's functions, loops and branches inlined before planning (graphs by tools/make_inlined_graphs.py)."""

import pathlib

import numpy as np
import pytest

from graph_files import graph_file
from loop_text import counted_loop
from pocketgraph.errors import RunError
from pocketgraph.graph import Function, Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.planning.rewriting.function_inlining import inline_calls

GRAPHS = pathlib.Path(__file__).parent / "inlined"
CASES = ["chosen", "gru_any_length", "inside", "lstm", "repeated"]


def golden(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(feeds, TensorFlow's results) by tensor name."""
    with np.load(GRAPHS / f"{name}.npz") as data:
        named = {key: data[key] for key in data.files}
    port = lambda key: f"{key[:-2]}:{key[-1]}"  # noqa: E731
    feeds = {port(key[3:]): value for key, value in named.items() if key.startswith("in_")}
    return feeds, {port(key[4:]): value for key, value in named.items() if key.startswith("out_")}


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", CASES)
def test_equals_tensorflow(name: str, engine: str | None) -> None:
    feeds, expected = golden(name)
    with Session(graph_file(GRAPHS, f"{name}"), threads=1, engine=engine) as session:
        for _ in range(3):  # the third run goes the quickest way
            for found, wanted in zip(session.run(list(expected), feeds), expected.values(), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["lstm", "gru_any_length"])
def test_a_loop_of_known_length_runs_on_litert_as_a_whole(name: str) -> None:
    feeds, expected = golden(name)
    plan = Session(graph_file(GRAPHS, f"{name}"), threads=1).plan(list(expected), feeds)
    assert {part.runs_on for part in plan.parts} == {"litert"}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("name", "op"), [("repeated", "Conv2D"), ("chosen", "Conv2D"), ("inside", "MatMul")])
def test_heavy_parts_of_other_loops_and_branches_run_on_litert(name: str, op: str, tmp_path: pathlib.Path) -> None:
    feeds, expected = golden(name)
    with Session(graph_file(GRAPHS, f"{name}"), threads=1, cache_dir=tmp_path) as session:
        session.run(list(expected), feeds)
        ran = [node for node in session.profile(list(expected), feeds).nodes if node.op == op]
    assert ran
    assert {node.runs_on for node in ran} == {"litert"}


@pytest.mark.parametrize(("number", "way"), [(0, "times two"), (1, "rectified"), (2, "less one"), (-3, "less one")])
def test_a_switch_with_many_ways(number: int, way: str) -> None:
    feeds, expected = golden("chosen")
    (count,) = (name for name, value in feeds.items() if value.shape == () and value.dtype == np.int32)
    assert any(node.op == "_SwitchN" for node in graph_file(GRAPHS, "chosen"))
    (less_one,) = expected.values()  # the golden's 7 takes the last way
    y = less_one + 1
    wanted = {"times two": y * 2, "rectified": np.maximum(y, 0), "less one": less_one}[way]
    for engine in ("reference", None):
        session = Session(graph_file(GRAPHS, "chosen"), threads=1, engine=engine)
        (found,) = session.run(list(expected), {**feeds, count: np.int32(number)})
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_switch_with_many_ways_in_a_loop_that_is_written_out() -> None:
    text = "x = Placeholder(dtype=float, shape=[2])\nthree = Const(int32 3)\n" + counted_loop(
        "three",
        """
        way = _SwitchN(v, i, T=float, num_outs=3)
        squared = Square(way, T=float)
        halved = Mul(way:1, way:1, T=float)
        turned = Neg(way:2, T=float)
        next = Merge(squared, halved, turned, N=3, T=float)
        """,
    )
    graph = parse(text)
    for engine in ("reference", None):
        (found,) = Session(graph, engine=engine).run("y", {"x": np.array([1.5, -2], np.float32)})
        np.testing.assert_allclose(found, -(np.array([1.5, -2], np.float32) ** 4))


def inlined(graph: Graph, fetch: str, fed: str) -> Graph:
    feeds = frozenset({Endpoint(fed, 0)})
    return inline_calls(graph, needed(graph, feeds, [Endpoint(fetch, 0)], ()), feeds, {fetch})


def test_functions_with_effects_stay_functions() -> None:
    graph = graph_file(GRAPHS, "repeated")
    feeds, expected = golden("repeated")
    fetch, fed = next(iter(expected))[:-2], next(iter(feeds))[:-2]
    assert not inlined(graph, fetch, fed).functions
    body = next(name for name, function in graph.functions.items() if any(n.op == "Conv2D" for n in function.nodes))
    function = graph.functions[body]
    nodes = tuple(node.replace(op="Print") if node.op == "Relu" else node for node in function.nodes)
    changed = Function(body, nodes, function.encoded)
    loud = graph.replace(list(graph), functions={**graph.functions, body: changed})
    assert inlined(loud, fetch, fed) is loud


def test_a_fed_result_of_a_call_keeps_the_call() -> None:
    graph = graph_file(GRAPHS, "repeated")
    call = next(node.name for node in graph if node.op in ("While", "StatelessWhile"))
    fetch = next(iter(golden("repeated")[1]))[:-2]
    assert inlined(graph, fetch, call) is graph


def test_a_loop_without_end_is_still_told_of() -> None:
    feeds, expected = golden("repeated")
    (count,) = (name for name, value in feeds.items() if value.shape == ())
    session = Session(graph_file(GRAPHS, "repeated"), threads=1, step_limit=1000)
    with pytest.raises(RunError, match="does not end"):
        session.run(list(expected), {**feeds, count: np.int32(1 << 30)})
