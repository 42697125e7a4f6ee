"""Feeds that files hold: arrays, and pictures, recordings and texts for an input by its name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pocketgraph.datasets.sample_reading import SampleReading
    from pocketgraph.graph import Graph


def gathered(graph: Graph, texts: Sequence[str], reading: SampleReading, outputs: Sequence[str]) -> dict[str, Any]:
    """The feeds that options such as ``FILE.npz``, ``NAME=FILE`` and, of the only input, ``FILE`` describe.

    An input that takes texts gets the file's bytes. One of numbers gets what the file holds: an array; a picture,
    scaled and resized as ``reading`` says; a recording; a table with one row.

    Args:
        graph: the model.
        texts: the options.
        reading: how pictures and recordings are read.
        outputs: what is to be computed.

    Raises:
        UsageError: a file does not fit its input, or an input is given twice.
    """
    from pocketgraph.runtime.feed_files import read_feeds, tensor_of_key

    collected: dict[str, Any] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or os.path.exists(text):
            name, path = "", text
        if not name and path.endswith((".npz", ".npy")):
            found = dict(read_feeds(path, graph))
        else:
            tensor = tensor_of_key(name, graph, {}) if name else _only_input(graph, outputs, path)
            found = _of_input(graph, tensor, path, reading, outputs)
        for tensor, value in found.items():
            if tensor in collected:
                raise UsageError(f"--inputs gives '{tensor}' twice")
            collected[tensor] = value
    return collected


def _only_input(graph: Graph, outputs: Sequence[str], path: str) -> str:
    from pocketgraph.graph import canonical
    from pocketgraph.runtime.samples import sample_fetches, sample_inputs

    inputs = sample_inputs(graph, list(outputs) or sample_fetches(graph))
    if len(inputs) != 1:
        raise UsageError(f"the model has {len(inputs)} inputs", where=path, hint=f"say which it is for: NAME={path}")
    return canonical(inputs[0])


def _of_input(
    graph: Graph, tensor: str, path: str, reading: SampleReading, outputs: Sequence[str]
) -> dict[str, Any]:  # fmt: skip
    from pocketgraph.datasets import csv_tables, file_lists
    from pocketgraph.graph.dtype import STRING
    from pocketgraph.quantization.evaluation.data_feeds import data_feeds
    from pocketgraph.runtime.feed_files import read_input

    takes_text = graph.producer(tensor).attr("dtype", None) is STRING
    is_sample = file_lists.is_picture(path) or file_lists.is_recording(path) or path.endswith(csv_tables.SUFFIXES)
    if takes_text or not is_sample:
        return {tensor: read_input(graph, tensor, path)}
    feeds = data_feeds(graph, path, reading, outputs=outputs, inputs=[tensor], limit=1)
    return dict(feeds[0])
