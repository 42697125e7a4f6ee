"""Graph models of TensorFlow.js: what TensorFlow.js itself computes, and what is said of damaged ones."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph import formats
from pocketgraph.errors import FormatError, PocketgraphError, UsageError
from pocketgraph.formats.content import Kind
from pocketgraph.formats.model_file_facts import model_bytes
from pocketgraph.graph.text_format import print_graph
from pocketgraph.pages.quantities import bytes_text
from pocketgraph.quantization.evaluation.runnable_models import open_model
from pocketgraph.runtime import Session
from support import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "tensorflow_js"
ANSWERS: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text())
MODEL = FOLDER / "model.json"


def feeds() -> dict[str, Any]:
    return {"x": np.float32(ANSWERS["x"]).reshape(1, 6, 6, 3), "asked": [word.encode() for word in ANSWERS["asked"]]}


@pytest.fixture
def copied(tmp_path: pathlib.Path) -> pathlib.Path:
    """The model in a folder where it may be changed."""
    shutil.copytree(FOLDER, tmp_path / "web")
    return tmp_path / "web" / "model.json"


def change(path: pathlib.Path, *where: str | int, to: Any) -> None:
    """Sets one value in the file, by the keys that lead to it."""
    described = json.loads(path.read_text())
    inner = described
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = to
    path.write_text(json.dumps(described))


@pytest.mark.parametrize("engine", ["reference", None])
def test_results_are_those_of_tensorflow_js(engine: str | None) -> None:
    with Session(MODEL, engine=engine) as session:
        found = session.run(["y", "found", "conv", "prelu"], feeds())
    for name, values in zip(["y", "found", "conv", "prelu"], found, strict=True):
        np.testing.assert_allclose(values, ANSWERS[name], rtol=2e-5, atol=2e-6, err_msg=name)


def test_the_graph_has_ops_of_tensorflow_alone() -> None:
    graph = pocketgraph.load(MODEL)
    ops = {node.op for node in graph}
    assert {"Conv2D", "DepthwiseConv2dNative", "MatMul", "LeakyRelu", "Relu6"} <= ops
    assert not {op for op in ops if "Fused" in op or op == "Prelu"}
    assert graph["dense"].attr("alpha") == pytest.approx(0.3)
    assert graph["unknown"].tensor.dtype.name == "int64"
    assert graph.signatures["serving_default"].outputs == {"scores": "y:0", "found": "found:0"}


def test_it_goes_the_way_of_other_files(tmp_path: pathlib.Path) -> None:
    frozen = tmp_path / "frozen.pb"
    assert call("convert", MODEL, frozen) == 0
    with Session(frozen) as session:
        (y,) = session.run(["y"], feeds())
    np.testing.assert_allclose(y, ANSWERS["y"], rtol=2e-5)
    small = tmp_path / "y.tflite"
    pocketgraph.export(MODEL, small, outputs=["y"])
    assert pocketgraph.verify(frozen, small, outputs=["y"]).passed


def test_a_folder_is_told_by_what_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert formats.identify(MODEL).kind is Kind.TENSORFLOW_JS
    assert "model.json" in formats.identify(FOLDER).next
    assert call("identify", FOLDER) == 0
    said = capsys.readouterr().out
    assert "a graph model of TensorFlow.js" in said
    assert "signatures serving_default" in said


def test_a_model_is_as_large_as_its_shards_make_it(copied: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("identify", copied, "--json") == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert facts["bytes"] == sum(path.stat().st_size for path in copied.parent.iterdir() if path.name != "answers.json")
    (copied.parent / "group1-shard2of2.bin").unlink()
    assert call("identify", copied) == 1
    assert "which is not there" in capsys.readouterr().out


def test_other_weights_beside_the_same_description_are_another_model(tmp_path: pathlib.Path) -> None:
    """As a network has that was trained on: its model.json stays the same to the last byte."""
    kind = {"type": "DT_FLOAT"}
    nodes = [
        {"name": "x", "op": "Placeholder", "attr": {"dtype": kind}},
        {"name": "w", "op": "Const", "attr": {"dtype": kind}},
        {"name": "y", "op": "MatMul", "input": ["x", "w"], "attr": {"T": kind}},
    ]
    weights = [{"name": "w", "shape": [4, 4], "dtype": "float32"}]
    described = {
        "format": "graph-model",
        "modelTopology": {"node": nodes},
        "weightsManifest": [{"paths": ["shard.bin"], "weights": weights}],
    }
    model = tmp_path / "model.json"
    model.write_text(json.dumps(described))
    for value in (1.0, 2.0):
        (tmp_path / "shard.bin").write_bytes(np.full((4, 4), value, np.float32).tobytes())
        for _ in range(2):
            with Session(model, cache_dir=tmp_path / "cache") as session:
                np.testing.assert_array_equal(
                    session.run("y", {"x": np.ones((1, 4), np.float32)})[0], [[4 * value] * 4]
                )


def test_a_signature_without_inputs_means_all_placeholders(copied: pathlib.Path) -> None:
    change(copied, "signature", to={"outputs": {"scores": {"name": "y:0"}}})
    graph = pocketgraph.load(copied)
    assert graph.inputs == ("x:0", "asked:0")
    assert graph.outputs == ("y:0",)
    change(copied, "signature", "outputs", "scores", "name", to="gone:0")
    assert pocketgraph.load(copied).outputs == ()


def test_missing_and_short_shards_are_told(copied: pathlib.Path) -> None:
    second = copied.parent / "group1-shard2of2.bin"
    content = second.read_bytes()
    for length in range(0, len(content), 7):
        second.write_bytes(content[:length])
        with pytest.raises(FormatError, match=r"model.json: the files of weights end within '\w+'; copy or download"):
            pocketgraph.load(copied)
    second.unlink()
    with pytest.raises(FormatError, match=r"in 'group1-shard2of2.bin', which is not there; put the model's .bin files"):
        pocketgraph.load(copied)


def test_its_size_is_that_of_its_weights_too(copied: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = copied.stat().st_size + sum(path.stat().st_size for path in copied.parent.glob("*.bin"))
    assert copied.stat().st_size < model_bytes(str(copied)) == whole
    assert open_model(copied).size == whole
    with pytest.raises(UsageError, match="there is no signature 'other'"):
        pocketgraph.verify(copied, copied, signature="other")
    assert call("summarize", copied) == 0
    assert f"model.json, {bytes_text(whole)}, " in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize("name", ["../secret.bin", "/etc/hostname", "https://there/x.bin", "a\0b", "", "."])
def test_shards_elsewhere_are_not_read(copied: pathlib.Path, name: str) -> None:
    (copied.parent.parent / "secret.bin").write_bytes(bytes(10_000))
    change(copied, "weightsManifest", 0, "paths", to=[name])
    with pytest.raises(FormatError, match=r"which is no file beside it|which is not there"):
        pocketgraph.load(copied)


def test_links_lead_to_weights_beside_the_file_itself(copied: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """As in the cache of a hub, whose snapshots are links to files in one folder."""
    (snapshot := tmp_path / "snapshot").mkdir()
    for file in copied.parent.iterdir():
        (snapshot / file.name).symlink_to(file)
    assert print_graph(pocketgraph.load(snapshot / "model.json")) == print_graph(pocketgraph.load(copied))
    (snapshot / "model.json").unlink()
    (snapshot / "model.json").write_bytes(copied.read_bytes())
    with pytest.raises(FormatError, match="which is no file beside it"):
        pocketgraph.load(snapshot / "model.json")


def test_what_else_is_wrong_is_told(copied: pathlib.Path) -> None:
    whole = copied.read_text()
    for where, to, told in (
        (("weightsManifest", 0, "weights", 0, "name"), "other", "no weights are stored for the constant 'w1'"),
        (("weightsManifest", 0, "weights", 0, "shape"), [1 << 40, 1 << 40], "end within 'w1'"),
        (("weightsManifest", 0, "weights", 0, "shape"), [-1], "manifest of weights is damaged"),
        (("weightsManifest", 0, "weights", 0, "quantization", "dtype"), "uint4", "manifest of weights is damaged"),
        (("weightsManifest", 0, "weights", 0, "quantization", "scale"), float("nan"), "'w1' has the scale nan"),
        (("weightsManifest", 0, "weights", 0, "dtype"), "int32", "'w1' is float, and its weights are stored as int32"),
        (("weightsManifest", 0, "weights", 0, "quantization"), 3, "manifest of weights is damaged"),
        (("weightsManifest", 0, "weights"), 3, "manifest of weights is damaged"),
        (("weightsManifest", 0, "paths"), [3], "manifest of weights names 3 as a file"),
        (("modelTopology",), {}, "graph model of TensorFlow.js has no nodes"),
        (("modelTopology", "node", 0, "op"), 7, "the topology is no GraphDef"),
        (("modelTopology", "node", 2, "attr", "dtype"), {"type": "DT_NEW"}, "the topology is no GraphDef|'w1'"),
    ):
        copied.write_text(whole)
        change(copied, *where, to=to)
        with pytest.raises(FormatError, match=told):
            pocketgraph.load(copied)
    copied.write_text(whole[:-5])
    with pytest.raises(FormatError, match="the JSON is damaged"):
        pocketgraph.load(copied)


def test_damage_is_an_error_and_nothing_else(copied: pathlib.Path) -> None:
    whole = copied.read_bytes()
    rng = np.random.default_rng(3)
    for place in rng.integers(0, len(whole), 300):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        copied.write_bytes(changed)
        try:
            pocketgraph.load(copied)
        except PocketgraphError as error:
            assert str(error)  # noqa: PT017
