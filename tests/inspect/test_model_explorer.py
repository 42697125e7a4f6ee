"""Model Explorer's files: each node once, edges that lead somewhere, overlays that name nodes of the graph."""

from __future__ import annotations

import importlib.util
import json
import pathlib
from typing import Any

import pytest

from command_line import call
from graph_files import graph_file
from pocketgraph.errors import FormatError
from pocketgraph.formats import load, save
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.model_explorer import graph_collection, sensitivity_of_report, write_model_explorer
from pocketgraph.inspect.output_shapes import SHAPES

NETWORK = """
    net/x = Placeholder(dtype=float, shape=[1, 4])
    net/w = Const(float[4, 2] [[1, 2], [3, 4], [5, 6], [7, 8]])
    net/y = MatMul(net/x, net/w, T=float)
    first = Split(axis, net/y, T=float, num_split=2)
    axis = Const(int32 1)
    z = Add(first:1, first, ^net/w, T=float)
"""
"""Both results of a node are read, and a control edge waits."""


def read(path: pathlib.Path) -> Any:
    return json.loads(path.read_text())


def test_nodes_edges_and_shapes() -> None:
    found = graph_collection(parse(NETWORK), "a model")
    (graph,) = found["graphs"]
    assert (found["label"], graph["id"]) == ("a model", "main")
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert list(nodes) == ["net/x", "net/w", "net/y", "first", "axis", "z"]
    assert (nodes["net/y"]["label"], nodes["net/y"]["namespace"]) == ("MatMul", "net")
    assert [
        (edge["sourceNodeId"], edge["sourceNodeOutputId"], edge["targetNodeInputId"])
        for edge in nodes["z"]["incomingEdges"]
    ] == [("first", "1", "0"), ("first", "0", "1"), ("net/w", "control", "2")]
    (output,) = nodes["net/y"]["outputsMetadata"]
    assert {"key": "shape", "value": "float[1,2]"} in [
        {"key": attr["key"], "value": attr["value"].replace(" ", "")} for attr in output["attrs"]
    ]
    assert len(nodes["first"]["outputsMetadata"]) == 2


def test_overlays(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(NETWORK), tmp_path / "model.pb")
    report = {"layers": [{"name": "net/y:0", "activation_noise": 31.5}, {"name": "gone", "activation_noise": 3.0}]}
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert call("model_explorer", tmp_path / "model.pb", "-o", tmp_path / "m.json", "--measure",
                "--quantization", tmp_path / "report.json") == 0  # fmt: skip
    written = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    kinds = ["", ".time", ".operations", ".bytes", ".weights", ".eight_bits"]
    assert written == [str(tmp_path / f"m{kind}.json") for kind in kinds]
    values = {kind: read(tmp_path / f"m{kind}.json")["main"]["results"] for kind in kinds[1:]}
    assert values[".operations"]["net/y"]["value"] == 16
    assert values[".bytes"]["net/y"]["value"] == 8
    assert values[".weights"]["net/w"]["value"] == 32
    assert values[".eight_bits"] == {"net/y": {"value": 31.5}}
    assert sum(node["value"] for node in values[".time"].values()) > 0
    colours = read(tmp_path / "m.time.json")["main"]["gradient"]
    assert [colour["stop"] for colour in colours] == [0, 1]


def test_files_of_other_kinds_and_functions(tmp_path: pathlib.Path) -> None:
    from pocketgraph.exporting import export

    export(parse("x = Placeholder(dtype=float, shape=[1, 4])\ny = Softmax(x, T=float)"), tmp_path / "m.tflite")
    (made, *_) = write_model_explorer(load(tmp_path / "m.tflite"), str(tmp_path / "m.json"), "m")
    assert "tfl.softmax" in [node["label"] for node in read(pathlib.Path(made))["graphs"][0]["nodes"]]
    graph = graph_file(pathlib.Path(__file__).parent.parent / "runtime/functions", "branches")
    graphs = graph_collection(graph, "functions")["graphs"]
    assert len(graphs) > 1
    ids = {one["id"] for one in graphs}
    assert any(set(node["subgraphIds"]) & ids for node in graphs[0]["nodes"])


@pytest.mark.parametrize(
    "graph",
    [
        Graph([]),
        parse("a = Relu(b, T=float)\nb = Relu(a, T=float)"),
        Graph([Node('<b>"\x1b[2J', "Placeholder", (), {"dtype": FLOAT}), Node("y", "Unheard", ("gone:1",))]),
    ],
)
def test_odd_graphs(graph: Graph, tmp_path: pathlib.Path) -> None:
    (made, *_) = write_model_explorer(graph, str(tmp_path / "m.json"), "odd")
    nodes = read(pathlib.Path(made))["graphs"][0]["nodes"]
    assert len(nodes) == len(graph)
    assert all("\x1b" not in node["id"] for node in nodes)


def test_bad_calls(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(NETWORK), tmp_path / "model.pb")
    assert call("model_explorer", tmp_path / "model.pb", "-o", tmp_path / "m.html") == 2
    assert "Model Explorer reads .json" in capsys.readouterr().err
    assert call("model_explorer", tmp_path / "none.pb") == 1
    (tmp_path / "r.json").write_text('{"layers": 3}')
    with pytest.raises(FormatError, match="no report of quantize"):
        sensitivity_of_report(tmp_path / "r.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pb", "r.json"]


@pytest.mark.skipif(
    importlib.util.find_spec("model_explorer") is None, reason="the package ai-edge-model-explorer is not here"
)
def test_model_explorers_own_classes_take_it() -> None:
    from model_explorer import graph_builder  # type: ignore[import-not-found]

    for node in graph_collection(parse(NETWORK), "a model")["graphs"][0]["nodes"]:
        made = graph_builder.GraphNode(**node)
        assert made.id == node["id"]


def test_convert_writes_shapes(tmp_path: pathlib.Path) -> None:
    save(parse(NETWORK), tmp_path / "model.pb")
    assert call("convert", tmp_path / "model.pb", tmp_path / "shaped.pb", "--shapes") == 0
    graph = load(tmp_path / "shaped.pb")
    shapes = graph["first"].attrs[SHAPES]
    assert isinstance(shapes, tuple)
    assert [tuple(shape.known) for shape in shapes] == [(1, 1), (1, 1)]  # type: ignore[union-attr]
    assert call("convert", tmp_path / "model.pb", tmp_path / "plain.pb") == 0
    assert SHAPES not in load(tmp_path / "plain.pb")["first"].attrs


def test_the_default_replaces_no_other_file(tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any) -> None:
    """As the model itself, which TensorFlow.js calls model.json."""
    monkeypatch.chdir(tmp_path)
    save(parse(NETWORK), "model.pb")
    (tmp_path / "model.json").write_text('{"format": "graph-model"}')
    assert call("model_explorer", "model.pb") == 2
    assert "-o model.json replaces it" in capsys.readouterr().err
    assert (tmp_path / "model.json").read_text() == '{"format": "graph-model"}'
    for flags in (["-o", "model.json"], []):
        assert call("model_explorer", "model.pb", *flags) == 0
