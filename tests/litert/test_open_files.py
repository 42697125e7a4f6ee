"""LiteRT files that leave sizes open: 1 stands in them for these, with which a window, say, does not run."""

from __future__ import annotations

import contextlib
import pathlib
import struct

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph.errors import RunError
from pocketgraph.graph import const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.untrusted.isolated import IsolatedInterpreter
from pocketgraph.runtime import Session

WINDOW = np.arange(40, dtype=np.float32).reshape(20, 2)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A file whose window of 20 steps does not fit into the one step that stands in it."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, ?, 1, 1])
        w = Const(float 0.0)
        y = Conv2D(x, w, T=float, strides=[1, 4, 1, 1], padding="VALID")
    """)
    weights = const("w", WINDOW.reshape(20, 1, 1, 2))
    file = tmp_path_factory.mktemp("open") / "net.tflite"
    pocketgraph.export(graph.map_nodes(lambda node: weights if node.name == "w" else node), file)
    content, sizes = file.read_bytes(), struct.pack("<4i", 1, 224, 1, 1)
    assert content.count(sizes) == 1
    file.write_bytes(content.replace(sizes, struct.pack("<4i", 1, 1, 1, 1)))
    return file


def test_it_runs_with_sizes_that_fit(path: pathlib.Path) -> None:
    sound = np.linspace(-1, 1, 64, dtype=np.float32)
    wanted = np.stack([sound[start : start + 20] @ WINDOW for start in range(0, 45, 4)])
    with Session(path) as session:
        for _ in range(2):
            (found,) = session.run("y", {"x": sound.reshape(1, 64, 1, 1)})
            np.testing.assert_allclose(found[0, :, 0], wanted, rtol=1e-5, atol=1e-4)
            with pytest.raises(RunError, match=r"may not take these: 'x' \[1, \?, 1, 1\] with \[1, 10, 1, 1\]"):
                session.run("y", {"x": np.ones((1, 10, 1, 1), np.float32)})
    with contextlib.closing(IsolatedInterpreter(str(path))) as interpreter:
        (found,) = interpreter.run([sound.reshape(1, 64, 1, 1)])
    np.testing.assert_allclose(found[0, :, 0], wanted, rtol=1e-5, atol=1e-4)


def test_sizes_that_are_made_up_are_such_as_it_runs_with(
    path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("benchmark_model", f"--graph={path}", "--max_num_runs=2") == 0
    assert "--input_layer_shape=1,224,1,1" in capsys.readouterr().err
    assert call("plan", path) == 0
    assert call("verify", path, path) == 0


def test_an_onnx_file_gets_such_sizes_as_well(path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    weights = const("w", WINDOW.reshape(20, 1, 1, 2))
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, ?, 1])
        axis = Const(int32 2)
        wide = ExpandDims(x, axis, T=float)
        w = Const(float 0.0)
        y = Conv2D(wide, w, T=float, strides=[1, 4, 1, 1], padding="VALID")
    """)
    file = path.with_suffix(".onnx")
    pocketgraph.export(graph.map_nodes(lambda node: weights if node.name == "w" else node), file)
    capsys.readouterr()
    assert call("benchmark_model", f"--graph={file}", "--max_num_runs=2") == 0
    assert "--input_layer_shape=1,32,1" in capsys.readouterr().err
