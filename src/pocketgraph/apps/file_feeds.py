"""Feeds out of what people have: arrays, and files of arrays, pictures, recordings and texts, by the inputs' names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pocketgraph.datasets import csv_tables, file_lists
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import UsageError, option
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.dtype import STRING
from pocketgraph.pages.quantities import counted

Given = Mapping[str, Any] | Sequence[tuple[str, Any]] | str | os.PathLike[str]
"""Arrays or paths of files by the names of inputs, "" for the only one or a file with names in it; or such a file."""


def is_given(inputs: object) -> bool:
    """Whether these are feeds of one run, and not several sets of them."""
    if isinstance(inputs, Mapping | str | os.PathLike):
        return True
    return isinstance(inputs, list | tuple) and all(isinstance(item, tuple) for item in inputs)


def pairs_of(inputs: Given | None) -> list[tuple[str, Any]]:
    """The feeds of one run as pairs of a name and a value."""
    if inputs is None:
        return []
    if isinstance(inputs, str | os.PathLike):
        return [("", inputs)]
    return list(inputs.items() if isinstance(inputs, Mapping) else inputs)


def feeds_of(graph: Graph, given: Given | None, reading: SampleReading, outputs: Sequence[str]) -> dict[str, Any]:
    """Arrays by tensor name.

    An array is taken as it is, and so is a text for an input of texts. A path for such an input gives the file's bytes;
    for one of numbers what the file holds: an array; a picture, scaled and resized as ``reading`` says; a recording; a
    table with one row.

    Args:
        graph: the model.
        given: what is fed.
        reading: how pictures and recordings are read.
        outputs: what is to be computed; none for the likely outputs.

    Raises:
        UsageError: a file does not fit its input, or an input is given twice.
    """
    from pocketgraph.runtime.feeding.feed_files import read_feeds, tensor_of_key

    collected: dict[str, Any] = {}
    for name, value in pairs_of(given):
        path = _path_of(graph, name, value)
        if path is None:
            found = {tensor_of_key(name, graph, {}): value}
        elif not name and path.lower().endswith((".npz", ".npy")):
            found = dict(read_feeds(path, graph))
        else:
            tensor = tensor_of_key(name, graph, {}) if name else _only_input(graph, outputs, path)
            found = _of_input(graph, tensor, path, reading, outputs)
        for tensor, array in found.items():
            if tensor in collected:
                raise UsageError(f"{option('inputs')} gives '{tensor}' twice")
            collected[tensor] = array
    return collected


def _path_of(graph: Graph, name: str, value: Any) -> str | None:
    """The file that a value names; None for what is a value itself."""
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if not isinstance(value, str):
        return None
    from pocketgraph.runtime.feeding.feed_files import tensor_of_key

    takes_text = bool(name) and graph.producer(tensor_of_key(name, graph, {})).attr("dtype", None) is STRING
    return None if takes_text else value


def _only_input(graph: Graph, outputs: Sequence[str], path: str) -> str:
    from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders

    inputs = needed_placeholders(graph, list(outputs) or default_fetches(graph))
    if len(inputs) != 1:
        raise UsageError(
            f"the model has {counted(len(inputs), 'input')}", where=path, hint=f"say which it is for: NAME={path}"
        )
    return canonical(inputs[0])


def _of_input(
    graph: Graph, tensor: str, path: str, reading: SampleReading, outputs: Sequence[str]
) -> dict[str, Any]:  # fmt: skip
    from pocketgraph.quantization.evaluation.data_feeds import data_feeds
    from pocketgraph.runtime.feeding.feed_files import read_input

    takes_text = graph.producer(tensor).attr("dtype", None) is STRING
    is_sample = file_lists.is_picture(path) or file_lists.is_recording(path) or csv_tables.is_table(path)
    if takes_text and csv_tables.is_table(path):
        return dict(data_feeds(graph, path, reading, outputs=outputs, inputs=[tensor], limit=1)[0])
    if takes_text or not is_sample:
        return {tensor: read_input(graph, tensor, path)}
    feeds = data_feeds(graph, path, reading, outputs=outputs, inputs=[tensor], limit=1)
    return dict(feeds[0])
