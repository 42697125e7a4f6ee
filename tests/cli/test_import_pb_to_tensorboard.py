"""import_pb_to_tensorboard: what TensorBoard finds in its event file."""

from __future__ import annotations

import pathlib
import struct
from typing import Any

import pytest

import pocketgraph
from command_line import call
from pocketgraph.formats import from_bytes, save
from pocketgraph.formats.protos import message
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.text_format import parse
from support import model_dir, needs_shared

TEXT = """
    x = Placeholder(dtype=float, shape=[?, 2])
    w = Const(float [[1.0], [2.0]])
    y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    z = Identity(y, ^x, T=float, _class=["loc:@y"])
"""


def events(folder: pathlib.Path) -> list[Any]:
    (path,) = folder.iterdir()
    data, place, found = path.read_bytes(), 0, []
    while place < len(data):
        (size,) = struct.unpack_from("<Q", data, place)
        found.append(message("tensorflow.Event").FromString(data[place + 12 : place + 12 + size]))
        place += 16 + size
    return found


def shown(folder: pathlib.Path) -> Graph:
    version, graph, *_ = events(folder)
    assert version.file_version == "brain.Event:2"
    return from_bytes(graph.graph_def)


@pytest.mark.parametrize("name", ["graph.pb", "graph.pbtxt"])
def test_the_graph_is_under_import(tmp_path: pathlib.Path, name: str, capsys: Any) -> None:
    save(parse(TEXT), tmp_path / name)
    logs = tmp_path / "logs"
    assert call("import_pb_to_tensorboard", f"--model_dir={tmp_path / name}", f"--log_dir={logs}") == 0
    assert capsys.readouterr().out == f"Model Imported. Visualize by running: tensorboard --logdir={logs}\n"
    graph = shown(logs)
    assert list(graph.nodes) == ["import/x", "import/w", "import/y", "import/z"]
    assert graph["import/z"].inputs == ("import/y", "^import/x")
    assert graph["import/z"].attr("_class") == (b"loc:@import/y",)
    assert graph["import/y"].attr("_output_shapes") == (Shape((None, 1)),)


def test_measured_times_go_by_the_same_names(tmp_path: pathlib.Path) -> None:
    save(parse(TEXT), tmp_path / "graph.pb")
    logs = tmp_path / "logs"
    call("import_pb_to_tensorboard", f"--model_dir={tmp_path / 'graph.pb'}", f"--log_dir={logs}", "--measure")
    run = events(logs)[2]
    found: Any = message("tensorflow.RunMetadata").FromString(run.tagged_run_metadata.run_metadata)
    names = {node.node_name for device in found.step_stats.dev_stats for node in device.node_stats} - {"_SOURCE"}
    assert "import/y" in names
    assert names <= set(shown(logs).nodes)


def test_a_litert_file(tmp_path: pathlib.Path) -> None:
    save(parse(TEXT), tmp_path / "graph.pb")
    assert call("export", tmp_path / "graph.pb", "-o", tmp_path / "graph.tflite", "--outputs=z") == 0
    assert (
        call("import_pb_to_tensorboard", f"--model_dir={tmp_path / 'graph.tflite'}", f"--log_dir={tmp_path / 'l'}") == 0
    )
    assert "tfl.fully_connected" in {node.op for node in shown(tmp_path / "l")}


def test_tensorboard_reads_it(tmp_path: pathlib.Path) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard is not installed (extra tensorboard)",
    )
    save(parse(TEXT), tmp_path / "graph.pb")
    logs = tmp_path / "logs"
    call("import_pb_to_tensorboard", f"--model_dir={tmp_path / 'graph.pb'}", f"--log_dir={logs}", "--measure")
    read = accumulator.EventAccumulator(str(logs))
    read.Reload()
    graph = read.Graph()
    assert [node.name for node in graph.node] == ["import/x", "import/w", "import/y", "import/z"]
    assert [dim.size for dim in graph.node[2].attr["_output_shapes"].list.shape[0].dim] == [-1, 1]
    names = {node.node_name for device in read.RunMetadata("run").step_stats.dev_stats for node in device.node_stats}
    assert "import/y" in names


def test_bad_calls(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert call("import_pb_to_tensorboard", "--model_dir=x") == 2
    assert "--log_dir" in capsys.readouterr().err
    assert call("import_pb_to_tensorboard", f"--model_dir={tmp_path / 'none'}", f"--log_dir={tmp_path / 'logs'}") == 1
    assert not (tmp_path / "logs").exists()


@needs_shared
@pytest.mark.parametrize("name", ["sm_half_plus_two_tf2", "sm_mnist_conv", "mobilenet_v1_025_128_quant"])
def test_real_models(tmp_path: pathlib.Path, name: str) -> None:
    folder = model_dir(name)
    files = [*folder.rglob("saved_model.pb"), *folder.rglob("*.pb")]
    files = [path for path in files if path.name != "fingerprint.pb"]
    chosen = [path.parent if path.name == "saved_model.pb" else path for path in files]
    for number, path in enumerate(dict.fromkeys(chosen)):
        logs = tmp_path / str(number)
        assert call("import_pb_to_tensorboard", f"--model_dir={path}", f"--log_dir={logs}") == 0
        assert len(shown(logs)) == len(pocketgraph.load(path))
