"""Every kind of real file is loaded and saved without loss, judged by the protobuf library."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from pocketgraph import formats
from pocketgraph.formats import Kind
from pocketgraph.formats.protos import message
from pocketgraph.graph import Graph
from support import lines_taken, model_dir, needs_shared, shared

LARGEST = 3 << 20  # bytes of a file; keeps the suite fast


def graph_files() -> list[pathlib.Path]:
    base = shared()
    folders = sorted((base / "models").iterdir()) if base else []
    ops = [path for path in folders if path.name == "op_graphs"]
    files = [path for folder in folders if folder not in ops for path in sorted(folder.glob("*.pb*"))]
    files += [path for folder in ops for path in sorted(folder.rglob("*.pb"))[::12]]
    return [path for path in files if path.stat().st_size < LARGEST]


def judged(path: pathlib.Path) -> Any:
    """The GraphDef as the protobuf library reads it, None when the file is something else."""
    kind = formats.identify(path).kind
    if kind is Kind.GRAPH_DEF:
        return message("tensorflow.GraphDef").FromString(path.read_bytes())
    if kind is Kind.GRAPH_DEF_TEXT:
        from google.protobuf import text_format

        return text_format.Parse(path.read_text(), message("tensorflow.GraphDef")())
    return None


@needs_shared
def test_nothing_is_lost() -> None:
    count = 0
    for path in graph_files():
        wanted = judged(path)
        if wanted is None:
            continue
        graph = formats.load(path)
        encoded = formats.to_bytes(graph)
        assert message("tensorflow.GraphDef").FromString(encoded) == wanted, path
        # and again with every attribute decoded and encoded anew
        changed = Graph(
            [node.replace(name=node.name) for node in graph],
            functions=graph.functions,
            versions=graph.versions,
            extra=graph.extra,
        )
        assert message("tensorflow.GraphDef").FromString(formats.to_bytes(changed)) == wanted, path
        count += 1
    assert count > 100


@needs_shared
@pytest.mark.parametrize("name", ["faced_corrector", "vibcat", "mtcnn_blaueck"])
def test_the_text_form_loses_nothing(name: str, tmp_path: pathlib.Path) -> None:
    graph = formats.load(next(model_dir(name).glob("*.pb")))
    formats.save(graph, tmp_path / "g.pbtxt", text=True)
    again = message("tensorflow.GraphDef").FromString(formats.to_bytes(formats.load(tmp_path / "g.pbtxt")))
    assert again == message("tensorflow.GraphDef").FromString(formats.to_bytes(graph))


@needs_shared
def test_a_large_text_is_work_in_proportion_to_its_length(tmp_path: pathlib.Path) -> None:
    graph = formats.load(model_dir("pose_mobilenet_thin_text/graph.pb"))
    assert len(graph) == 4603

    def lines_of_reading(count: int) -> int:
        formats.save(graph.replace(list(graph)[:count]), tmp_path / "part.pbtxt")
        return lines_taken(lambda: formats.load(tmp_path / "part.pbtxt"))

    assert lines_of_reading(160) < 12 * lines_of_reading(20)
