"""Opens what is to be frozen: a graph in memory, a file, a SavedModel or a training's directory, with its values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pocketgraph.formats.checkpoints.checkpoint import open_checkpoint
from pocketgraph.freezing import training_dir
from pocketgraph.freezing.graph_variables import is_variable
from pocketgraph.freezing.tables import with_assets
from pocketgraph.graph import Graph, Tensor

PathLike = str | os.PathLike[str]
Checkpoint = PathLike | Mapping[str, Tensor]


@dataclass(frozen=True)
class TrainedModel:
    """Where a model comes from.

    Attributes:
        graph: the file of its graph, or the folder of a SavedModel; "" of one in memory.
        checkpoint: the prefix of its checkpoint; "" without one.
        has_own_values: whether it is a SavedModel, which brings its values along.
        initializer: the node that a SavedModel's loader runs; None for none.
    """

    graph: str
    checkpoint: str
    has_own_values: bool
    initializer: str | None = None


def opened(
    graph_or_path: Graph | PathLike, checkpoint: Checkpoint | None, tags: str | None, signature: str | None
) -> tuple[Graph, TrainedModel, Mapping[str, Tensor] | None, bool]:
    """The graph, where it comes from, its values, and whether its savers have the first word."""
    if isinstance(graph_or_path, Graph):
        if checkpoint is None:
            return _of_memory(graph_or_path)
        if isinstance(checkpoint, Mapping):
            return graph_or_path, TrainedModel("", "", False), checkpoint, False
        store = open_checkpoint(checkpoint)
        return graph_or_path, TrainedModel("", store.prefix, False), store, False
    from pocketgraph import formats

    if isinstance(checkpoint, Mapping):
        return (
            formats.load(graph_or_path, None, signature),
            TrainedModel(os.fspath(graph_or_path), "", False),
            checkpoint,
            False,
        )
    found = training_dir.find(graph_or_path, checkpoint)
    saved_model = os.path.isdir(found.graph)
    initializer = None
    if saved_model:
        graph, initializer = _of_saved_model(found.graph, tags, signature)
    else:
        graph = formats.load(found.graph, tags, signature)
    if found.checkpoint is None:
        return graph, TrainedModel(found.graph, "", saved_model, initializer), None, found.has_saver
    trained = TrainedModel(found.graph, found.checkpoint, saved_model, initializer)
    return graph, trained, open_checkpoint(found.checkpoint), found.has_saver


def _of_memory(graph: Graph) -> tuple[Graph, TrainedModel, Mapping[str, Tensor] | None, bool]:
    """A graph in memory, with the values that lie where it was loaded from, if they do."""
    from pocketgraph.formats.meta_graph import asset_files, init_op, read_saved_model

    if not os.path.isdir(graph.source) and not (os.path.exists(graph.source) and any(map(is_variable, graph))):
        return graph, TrainedModel("", "", False), None, False
    found = training_dir.find(graph.source)
    is_saved_model = os.path.isdir(found.graph)
    initializer = None
    if is_saved_model:
        stored = read_saved_model(found.graph)
        files = [asset_files(one) for one in stored]
        graph = with_assets(graph, {name: file for known in files for name, file in known.items()})
        initializer = next((name for one in stored if (name := init_op(one)) is not None and name in graph), None)
    store = open_checkpoint(found.checkpoint) if found.checkpoint is not None else None
    trained = TrainedModel(found.graph, found.checkpoint or "", is_saved_model, initializer)
    return graph, trained, store, found.has_saver


def _of_saved_model(folder: str, tags: str | None, signature: str | None) -> tuple[Graph, str | None]:
    """The graph of a SavedModel, and the node that its loader runs."""
    from pocketgraph.formats.meta_graph import asset_files, init_op, read_saved_model, with_signature, with_tags

    chosen = with_tags(read_saved_model(folder), tags, folder)
    return with_assets(with_signature(chosen.graph, signature, folder), asset_files(chosen)), init_op(chosen)
