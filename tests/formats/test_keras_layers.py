"""Layers models of TensorFlow.js: what TensorFlow.js and Keras compute, and what is said of those that are not read."""

from __future__ import annotations

import base64
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph.errors import FormatError
from pocketgraph.formats.model_file_facts import facts, model_bytes
from pocketgraph.graph import node_name
from pocketgraph.graph.order import inside_loops, reachable
from pocketgraph.graph.text_format import print_graph
from pocketgraph.runtime import Session
from support import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "keras_layers"
MODELS: dict[str, Any] = {
    f"{path.stem}.{name}": model
    for path in sorted(FOLDER.glob("*.json"))
    for name, model in json.loads(path.read_text()).items()
}


def written(folder: pathlib.Path, name: str, **changed: Any) -> pathlib.Path:
    """A model's file, with its weights beside it."""
    path = folder / "model.json"
    path.write_text(json.dumps({**MODELS[name]["model"], **changed}))
    (folder / "w.bin").write_bytes(base64.b64decode(MODELS[name]["weights"]))
    return path


def feeds(graph: pocketgraph.Graph, name: str) -> dict[str, Any]:
    given = zip(graph.inputs, MODELS[name]["inputs"], strict=True)
    return {
        ref: np.asarray(values, graph[ref.partition(":")[0]].dtype("dtype").numpy).reshape(shape)
        for ref, (shape, values) in given
    }


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_its_maker(name: str, engine: str | None, tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.load(written(tmp_path, name))
    with Session(graph, engine=engine) as session:
        found = session.run(list(graph.outputs), feeds(graph, name))
    for values, (shape, wanted) in zip(found, MODELS[name]["outputs"], strict=True):
        np.testing.assert_allclose(values, np.float32(wanted).reshape(shape), rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("name", MODELS)
def test_tensorflow_takes_its_loops_and_no_node_is_for_nothing(name: str, tmp_path: pathlib.Path) -> None:
    """A node of a loop that also takes something outside is refused there: "has inputs from different frames"."""
    graph = pocketgraph.load(written(tmp_path, name))
    inside = inside_loops(graph)
    for node in (graph[one] for one in inside):
        assert node.op == "Enter" or inside.issuperset(map(node_name, node.inputs)), node
    assert graph.nodes.keys() == {*reachable(graph, map(node_name, graph.outputs)), *map(node_name, graph.inputs)}


def test_both_makers_are_there() -> None:
    assert len(MODELS) == 24
    assert {name.partition(".")[0] for name in MODELS} == {"of_keras", "of_tensorflow_js"}


def test_nodes_and_signature_have_the_names_of_layers(tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.load(written(tmp_path, "of_tensorflow_js.merges"))
    assert graph.inputs == ("b:0", "a:0")
    assert graph.signatures["serving_default"].inputs == {"b": "b:0", "a": "a:0"}
    assert [graph[ref.partition(":")[0]].op for ref in graph.outputs] == ["BiasAdd", "AddV2"]
    assert {"shared", "shared_1"} <= set(graph.nodes)
    assert sum(name.endswith("shared/kernel") for name in graph.nodes) == 1


def test_it_goes_the_way_of_other_files(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "of_tensorflow_js.conv")
    assert call("identify", path) == 0
    assert "a TensorFlow.js model of Keras layers" in capsys.readouterr().out
    frozen, small = tmp_path / "frozen.pb", tmp_path / "small.tflite"
    assert call("convert", path, frozen) == 0
    pocketgraph.export(path, small)
    assert pocketgraph.verify(frozen, small).passed


def test_it_is_as_large_as_with_its_weights(tmp_path: pathlib.Path) -> None:
    path = written(tmp_path, "of_tensorflow_js.conv")
    whole = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert facts(path).bytes == model_bytes(str(path)) == whole > path.stat().st_size


def test_its_folder_is_the_model(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As what TensorFlow.js is given to load lies in a folder, beside its weights."""
    path = written(tmp_path, next(iter(MODELS)))
    assert print_graph(pocketgraph.load(tmp_path)) == print_graph(pocketgraph.load(path))
    assert call("summarize", tmp_path) == 0
    other = path.rename(tmp_path / "other.json")
    assert print_graph(pocketgraph.load(tmp_path)) == print_graph(pocketgraph.load(other))  # the only one there
    (tmp_path / "second.json").write_bytes(other.read_bytes())
    assert call("summarize", tmp_path) == 1
    assert f"give what is inside, such as {other} or {tmp_path / 'second.json'}" in capsys.readouterr().err


def layers_of(described: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = described["modelTopology"]["config"]["layers"]
    return found


@pytest.mark.parametrize(
    ("kind", "config", "told"),
    [
        ("Lambda", {}, r"the layer 'rows' \(Lambda\) is Python code, which is not run: .*; give the SavedModel"),
        (
            "Conv2D",
            {"dilation_rate": 2, "data_format": "channels_middle"},
            "has data_format=channels_middle, which is not",
        ),
        ("Conv2D", {"activation": "golden"}, "has the activation 'golden', which is not read"),
        ("Conv2D", {"name": "lost"}, "has no weight 'kernel' in the file"),
        ("Conv2D", {"strides": "x"}, "the description of its layers is damaged: ValueError"),
        (
            "LSTM",
            {"units": 3, "stateful": True},
            "keeps its state from call to call, which is not read: build the model with stateful=False",
        ),
    ],
)
def test_layers_that_are_not_read_are_told(
    kind: str, config: dict[str, Any], told: str, tmp_path: pathlib.Path
) -> None:
    described = json.loads(json.dumps(MODELS["of_tensorflow_js.conv"]["model"]))
    layer = layers_of(described)[0]
    given = {key: value for key, value in layer["config"].items() if kind == "Conv2D" or key == "batch_input_shape"}
    layer |= {"class_name": kind, "config": {"name": "rows", **given, **config}}
    with pytest.raises(FormatError, match=told):
        pocketgraph.load(written(tmp_path, "of_tensorflow_js.conv", **described))


def test_damage_is_told(tmp_path: pathlib.Path) -> None:
    name = "of_keras.nested_2"
    for keys, to, told in (
        (("config", "layers"), 3, "is damaged"),
        (("config", "output_layers"), [["gone", 0, 0]], "is damaged: KeyError"),
        (("config", "layers", 3, "inbound_nodes"), [[["add", 0, 0, {}]]], "takes its own result|is damaged"),
        (("config",), None, "is damaged"),
        (("config", "layers", 2, "config", "layers", 1, "config", "strides"), 0, "is damaged: ZeroDivisionError"),
        (("config", "layers", 4, "inbound_nodes"), json.loads("[" * 900 + "]" * 900), "is damaged"),
    ):
        described = json.loads(json.dumps(MODELS[name]["model"]))
        inner = described["modelTopology"]["model_config"]
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to
        with pytest.raises(FormatError, match=told):
            pocketgraph.load(written(tmp_path, name, **described))


def test_masked_steps_before_a_layer_that_counts_them_are_refused(tmp_path: pathlib.Path) -> None:
    described = json.loads(json.dumps(MODELS["of_tensorflow_js.words"]["model"]))
    layers = layers_of(described)
    layers[1] = {"class_name": "Rescaling", "config": {"name": "scale", "scale": 2}}
    with pytest.raises(
        FormatError, match=r"'scale' \(Rescaling\) takes steps of which some are masked, which is not read"
    ):
        pocketgraph.load(written(tmp_path, "of_tensorflow_js.words", **described))


@pytest.mark.parametrize(("axis", "reshapes"), [(1, 0), ([1, 2], 2)])
def test_a_softmax_along_one_axis_reshapes_nothing(axis: Any, reshapes: int, tmp_path: pathlib.Path) -> None:
    config = {"axis": axis, "name": "softmax", "batch_input_shape": [None, None, 4, 3], "dtype": "float32"}
    layers = [{"class_name": "Softmax", "config": config}]
    topology = {"class_name": "Sequential", "config": {"name": "model", "layers": layers}}
    graph = pocketgraph.load(written(tmp_path, "of_tensorflow_js.plain", modelTopology=topology, weightsManifest=[]))
    assert sum(node.op == "Reshape" for node in graph) == reshapes
    x = np.random.default_rng(0).normal(size=(2, 5, 4, 3)).astype(np.float32)
    axes = tuple(np.ravel(axis).tolist())
    with Session(graph) as session:
        (found,) = session.run(list(graph.outputs), {graph.inputs[0]: x})
    np.testing.assert_allclose(found, np.exp(x) / np.exp(x).sum(axes, keepdims=True), rtol=2e-5)
