"""Functions, branches and loops of TensorFlow 2 on graphs that it made (tools/make_function_graphs.py)."""

import json
import pathlib

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.errors import MissingKernelError, RunError
from pocketgraph.graph import DType, Func, Function, Graph, Node
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.inlining import inlined
from pocketgraph.runtime import Session

GRAPHS = pathlib.Path(__file__).parent / "functions"
CASES = json.loads((GRAPHS / "cases.json").read_text())


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", CASES)
def test_equals_tensorflow(name: str, engine: str | None) -> None:
    case = CASES[name]
    session = Session(graph_file(GRAPHS, f"{name}"), engine=engine)
    for feeds, expected in zip(case["feeds"], case["results"], strict=True):
        for result, value in zip(session.run(case["fetches"], feeds), expected, strict=True):
            assert result.shape == np.shape(value)
            np.testing.assert_allclose(result, value, rtol=1e-6)


@pytest.mark.parametrize("name", ["by_name", "calls"])
def test_inlined_bodies_give_the_same(name: str) -> None:
    case = CASES[name]
    graph = inlined(graph_file(GRAPHS, f"{name}"), case["fetches"])
    assert not graph.functions
    results = Session(graph, engine="reference").run(case["fetches"], case["feeds"][0])
    for result, value in zip(results, case["results"][0], strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6)


def with_functions(nodes: str, name: str = "branches", change: dict[str, str] | None = None) -> Graph:
    """The given nodes beside the functions of a case, whose nodes' ops may be changed."""
    graph = graph_file(GRAPHS, f"{name}")
    functions = {
        key: Function(key, tuple(n.replace(op=(change or {}).get(n.op, n.op)) for n in f.nodes), f.encoded)
        for key, f in graph.functions.items()
    }
    return graph.replace([*graph, *parse(nodes)] if nodes else list(graph), functions=functions)


def test_ops_inside_of_functions_must_have_kernels() -> None:
    with pytest.raises(MissingKernelError, match="support Op 'Mul7' used by 'cond/mul'"):
        Session(with_functions("", change={"Mul": "Mul7"})).run("Identity", {"n": 5})


def test_functions_may_not_touch_files_either() -> None:
    with pytest.raises(RunError, match=r"'cond/mul' \(ReadFile\)"):
        Session(with_functions("", change={"Mul": "ReadFile"})).run("Identity", {"n": 5})


def test_a_function_that_is_not_there() -> None:
    graph = Graph(
        [Node("y", "PartitionedCall", (), {"f": Func("nothing"), "Tin": (), "Tout": (DType.named("float"),)})]
    )
    with pytest.raises(RunError, match="the graph has no function 'nothing'"):
        Session(graph).run("y")


def test_a_loop_without_end() -> None:
    graph = with_functions("", name="nested", change={"AddV2": "Mul"})  # 0·1 stays 0
    with pytest.raises(RunError, match="does not end"):
        Session(graph, step_limit=5000).run("Identity", {"n": 3})


def test_a_counted_loop_that_never_comes_to_its_limit() -> None:
    graph = graph_file(GRAPHS, "counted")
    with pytest.raises(RunError, match=r"Invalid start/limit/delta: 20 30 -3"):
        Session(graph).run("Identity_2", {"n": 30})
    with pytest.raises(RunError, match="does not end"):
        Session(graph, step_limit=5000).run("Identity", {"n": 10**6})


def test_a_function_that_calls_itself_without_end() -> None:
    graph = with_functions("", name="calls")
    name, function = next((k, f) for k, f in graph.functions.items() if "b" in {i for n in f.nodes for i in n.inputs})
    again = Node("again", "PartitionedCall", ("a", "b"), {"f": Func(name), "Tout": (DType.named("float"),) * 2})
    nodes = [n.replace(inputs=["again:output:0", "a"]) if n.op == "Mul" else n for n in function.nodes]
    looped = Function(name, (*nodes, again), function.encoded)
    graph = graph.replace(functions={**graph.functions, name: looped})
    with pytest.raises(RunError, match="functions call each other more than 100 deep"):
        Session(graph).run("Identity_1", {"x": [[1.0, 2.0]]})


def test_nodes_in_functions_are_timed() -> None:
    trace = Session(graph_file(GRAPHS, "nested")).profile("Identity_1", {"n": 3})
    assert {"LessThan", "Less", "AddV2", "Mul"} & {t.op for t in trace.nodes}
