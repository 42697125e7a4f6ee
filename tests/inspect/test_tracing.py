"""Trace files: what TensorBoard and Chrome find in them."""

import json
import pathlib
import struct
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import UsageError
from pocketgraph.formats import from_bytes
from pocketgraph.formats.crc32c import checksum, masked
from pocketgraph.formats.event_file import record
from pocketgraph.formats.protos import message
from pocketgraph.formats.run_records import benchmark_entries
from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.tracing import step_stats_of, write_trace
from pocketgraph.runtime import Session, StepTrace

GRAPH = parse("x = Placeholder(dtype=float)\n y = Neg(x, T=float)\n z = Mul(y, y, T=float)")


@pytest.fixture(scope="module")
def trace() -> StepTrace:
    with Session(GRAPH, engine="reference") as session:
        return session.profile("z", {"x": np.ones((2, 3), np.float32)})


def test_run_metadata(trace: StepTrace, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.pb"
    write_trace(trace, path, GRAPH)
    found: Any = message("tensorflow.RunMetadata").FromString(path.read_bytes())
    (device,) = found.step_stats.dev_stats
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    source, y, z = device.node_stats
    assert source.timeline_label == "_SOURCE = NoOp()"
    assert (y.node_name, y.timeline_label, z.timeline_label) == ("y", "y = Neg(x)", "z = Mul(y, y)")
    assert y.all_start_micros <= z.all_start_micros
    assert z.memory[0].total_bytes == 24
    description = z.output[0].tensor_description
    assert description.dtype == 1
    assert [dim.size for dim in description.shape.dim] == [2, 3]
    alone: Any = message("tensorflow.StepStats").FromString(step_stats_of(trace))
    assert alone.dev_stats[0].node_stats[2].timeline_label == "z = Mul()"


def test_chrome_trace(trace: StepTrace, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.json"
    write_trace(trace, path, GRAPH)
    events = json.loads(path.read_text())["traceEvents"]
    done = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in done] == ["Neg", "Mul"]
    assert done[1]["args"] == {"name": "z", "bytes": 24, "input0": "y", "input1": "y", "output0": "float32[2, 3]"}
    assert done[1]["ts"] >= done[0]["ts"] + done[0]["dur"]
    with pytest.raises(UsageError, match=r"not as 'x\.txt'"):
        write_trace(trace, "x.txt")


def test_benchmark_entries() -> None:
    (entry,) = message("tensorflow.BenchmarkEntries").FromString(benchmark_entries("b", 4, 0.5, -1)).entry  # type: ignore[attr-defined]
    assert (entry.name, entry.iters, entry.cpu_time, entry.wall_time, entry.throughput) == ("b", 4, -0.25, 0.5, -1)


def events_of(path: pathlib.Path) -> list[Any]:
    """The events of a file, read by TensorFlow's rules for TFRecords, checksums and all."""
    data, place, found = path.read_bytes(), 0, []
    while place < len(data):
        (size,) = struct.unpack_from("<Q", data, place)
        assert struct.unpack_from("<I", data, place + 8) == (masked(checksum(data[place : place + 8])),)
        body = data[place + 12 : place + 12 + size]
        assert struct.unpack_from("<I", data, place + 12 + size) == (masked(checksum(body)),)
        found.append(message("tensorflow.Event").FromString(body))
        place += 16 + size
    return found


def test_an_event_file_for_tensorboard(trace: StepTrace, tmp_path: pathlib.Path) -> None:
    large = Node("weights", "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(np.ones((40, 40), np.float32))})
    small = Node("scale", "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(np.ones(3, np.float32))})
    for _ in range(2):
        write_trace(trace, f"{tmp_path}/logs/", Graph([*GRAPH, large, small]))
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == 2, "each run has a file of its own"
    assert all(file.name.startswith("events.out.tfevents.") for file in files)
    version, graph, run = events_of(files[0])
    assert version.file_version == "brain.Event:2"
    shown = from_bytes(graph.graph_def)
    assert list(shown.nodes) == ["x", "y", "z", "weights", "scale"]
    assert shown["weights"].attr("value", None) is None
    assert shown["scale"].tensor.numpy().tolist() == [1, 1, 1]
    assert run.tagged_run_metadata.tag == "run"
    found: Any = message("tensorflow.RunMetadata").FromString(run.tagged_run_metadata.run_metadata)
    assert [node.node_name for node in found.step_stats.dev_stats[0].node_stats] == ["_SOURCE", "y", "z"]
    write_trace(trace, tmp_path / "logs")  # a folder that is there needs no slash
    assert len(list((tmp_path / "logs").iterdir())) == 3


def test_checksums_are_those_of_tensorflows_records() -> None:
    """What TensorFlow 2.21's TFRecordWriter wrote for b"abc"."""
    assert record(b"abc").hex() == "0300000000000000b099490e6162636e57f121"
