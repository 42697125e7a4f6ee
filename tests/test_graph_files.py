"""Graphs beside tests are text: what is printed of a graph with functions and weights is that graph, and none is left
out of it."""

from __future__ import annotations

import pathlib

import numpy as np

from function_text import function_lines, with_functions
from graph_files import graph_file, keep_as_text
from pocketgraph import formats
from pocketgraph.graph import Graph, Tensor, const
from pocketgraph.graph.graph import Versions
from pocketgraph.graph.text_format import parse, print_graph
from support import ROOT

FILES = {
    "saved_model.pb": "a part of a SavedModel, read as one",
    "fingerprint.pb": "a part of a SavedModel, read as one",
    "packages/graph.pb": "TensorFlow packed that very file",
}
"""Files of graphs whose bytes are the test."""

LIBRARY = """
stateful body(i: int32, x: float) -> i: int32 = add:z:0, x: float = x, ^write = save
attributes = Function(_construction_context="kEagerRuntime")
x = Argument(_output_shapes=[[2,?]])
one = Const(int32 1)
add = AddV2(i, one:output:0, T=int32)
save = NoOp(^add)
last(x: float) -> x: float = scaled:z:0
w = Const(float[5,5])
scaled = Mul(x, w:output:0, T=float)
""".strip().splitlines()


def large(shift: float) -> np.ndarray:
    return np.arange(25, dtype=np.float32).reshape(5, 5) / 7 + shift


def test_what_is_kept_is_the_graph(tmp_path: pathlib.Path) -> None:
    nodes = [*parse("x = Placeholder(dtype=float)\nn = Const(int64 [1, 2])"), const("w", large(0))]
    graph = with_functions(
        Graph(nodes, versions=Versions(134, 12)), (line.replace("5,5]", "5,5] 1") for line in LIBRARY)
    )
    last = graph.functions["last"]
    weight = last.nodes[0].replace(attrs={**last.nodes[0].attrs, "value": Tensor.from_numpy(large(1))})
    graph = graph.replace(
        functions={**graph.functions, "last": type(last)("last", (weight, last.nodes[1]), last.encoded)}
    )
    formats.save(graph, tmp_path / "net.pb")
    before = formats.to_bytes(graph)
    keep_as_text(tmp_path / "net.pb")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.graph", "net.weights.npz"]
    text = (tmp_path / "net.graph").read_text().splitlines()
    assert text[0] == "# producer 134, min_consumer 12"
    assert text[3] == "w = Const(float[5,5])"
    assert [line for line in text[4:] if line] == LIBRARY
    assert formats.to_bytes(graph_file(tmp_path, "net")) == before


def test_short_results_are_floats() -> None:
    graph = with_functions(Graph([]), ["f(x: float) -> y:z:0, x", "y = Neg(x, T=float)"])
    assert next(function_lines(graph.functions["f"])) == "f(x: float) -> result0: float = y:z:0, result1: float = x"
    assert print_graph(graph.functions["f"].nodes) == "y = Neg(x, T=float)\n"


def test_graphs_beside_tests_are_text() -> None:
    found = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.pb")]
    assert not [name for name in found if not name.endswith(tuple(FILES))]
    assert not [name for name in FILES if not any(path.endswith(name) for path in found)]
