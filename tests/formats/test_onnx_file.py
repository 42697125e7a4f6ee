"""ONNX files as graphs, and what a session makes of them where ONNX Runtime is installed."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import FormatError, PocketgraphError, RunError
from pocketgraph.formats import onnx_file
from pocketgraph.runtime import Session
from support import ROOT

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
FIXTURES = ROOT / "tests" / "fixtures" / "tflite"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An ONNX file of ours, of a net that TensorFlow has run."""
    path = tmp_path_factory.mktemp("onnx") / "net.onnx"
    pocketgraph.export(FIXTURES / "numbers.pb", path, outputs=["y"])
    return path


def test_the_graph_of_a_file(model: pathlib.Path) -> None:
    graph = pocketgraph.load(model)
    assert list(graph.signatures) == ["serving_default"]
    assert graph["x"].shape().dims == (4, 6)
    assert graph.outputs == ("y:0",)
    assert any(node.op.startswith("onnx.") for node in graph)


def test_a_session_and_verify_run_it(model: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    with np.load(FIXTURES / "numbers.npz") as data:
        x, y = data["x"], data["y"]
    with Session(model, threads=1) as session:
        (found,) = session.run("y", {"x": x})
        np.testing.assert_allclose(found, y, rtol=1e-5)
        assert session.plan().parts[0].runs_on == "onnxruntime"
        inside = next(node.name for node in session.graph if node.op.startswith("onnx."))
        with pytest.raises(RunError, match="is no output of it"):
            session.run(inside, {"x": x})
    assert pocketgraph.verify(FIXTURES / "numbers.pb", model).passed


def test_damage_is_an_error_and_nothing_else(model: pathlib.Path) -> None:
    whole = model.read_bytes()
    rng = np.random.default_rng(6)
    for place in rng.integers(0, len(whole), 600):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        try:
            onnx_file.parse(bytes(changed))
        except PocketgraphError:
            continue
    with pytest.raises(FormatError):
        onnx_file.parse(whole[: len(whole) // 2])


def test_it_is_saved_as_it_was(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.load(model)
    pocketgraph.save(graph, tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes() == model.read_bytes()
    with pytest.raises(FormatError, match="the operators of an ONNX file have no GraphDef form"):
        pocketgraph.save(graph, tmp_path / "copy.pb")
