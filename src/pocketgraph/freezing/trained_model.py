"""Opens what is to be frozen: a graph in memory, a file, a SavedModel or a training's directory, with its values."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pocketgraph import formats
from pocketgraph.formats.checkpoints.checkpoint import open_checkpoint
from pocketgraph.formats.content import Kind
from pocketgraph.formats.detect import identify
from pocketgraph.formats.files import PathLike
from pocketgraph.formats.meta_graph import asset_files, init_op, read_saved_model, with_signature, with_tags
from pocketgraph.freezing import training_dir
from pocketgraph.freezing.graph_variables import is_variable
from pocketgraph.freezing.tables import with_assets
from pocketgraph.freezing.training_dir import TrainedModel
from pocketgraph.graph import Graph, Tensor

Checkpoint = PathLike | Mapping[str, Tensor]
WITH_VALUES = (Kind.HDF5, Kind.KERAS, Kind.KERAS_JSON, Kind.TENSORFLOW_JS, Kind.TENSORFLOW_JS_LAYERS)
"""Files that are read as graphs without variables, and are none of TensorFlow's."""


def opened(
    graph_or_path: Graph | PathLike, checkpoint: Checkpoint | None, tags: str | None, signature: str | None
) -> tuple[Graph, TrainedModel, Mapping[str, Tensor] | None]:
    """The graph, where it comes from, and its values."""
    if isinstance(graph_or_path, Graph):
        if checkpoint is None:
            return _of_memory(graph_or_path)
        if isinstance(checkpoint, Mapping):
            return graph_or_path, TrainedModel("", None, False), checkpoint
        store = open_checkpoint(checkpoint)
        return graph_or_path, TrainedModel("", store.prefix, False), store

    if isinstance(checkpoint, Mapping):
        graph = formats.load(graph_or_path, None, signature)
        return graph, TrainedModel(os.fspath(graph_or_path), None, False), checkpoint
    trained = training_dir.find(graph_or_path, checkpoint)
    if os.path.isdir(trained.graph):
        graph, initializer = _of_saved_model(trained.graph, tags, signature)
        mine = initializer if checkpoint is None else None  # what it assigns may be older than another checkpoint
        trained = trained._replace(is_saved_model=True, initializer=mine)
    else:
        graph = formats.load(trained.graph, tags, signature)
    return graph, trained, open_checkpoint(trained.checkpoint) if trained.checkpoint is not None else None


def holds_values(path: str) -> bool:
    """Whether a file is no graph of TensorFlow, so that writing one is something, though its weights are in it."""
    return bool(path) and identify(path).kind in WITH_VALUES


def _of_memory(graph: Graph) -> tuple[Graph, TrainedModel, Mapping[str, Tensor] | None]:
    """A graph in memory, with the values that lie where it was loaded from, if they do."""
    if not os.path.isdir(graph.source) and not (os.path.exists(graph.source) and any(map(is_variable, graph))):
        return graph, TrainedModel("", None, False), None
    trained = training_dir.find(graph.source)
    if os.path.isdir(trained.graph):
        stored = read_saved_model(trained.graph)
        files = [asset_files(one) for one in stored]
        graph = with_assets(graph, {name: file for known in files for name, file in known.items()})
        initializer = next((name for one in stored if (name := init_op(one)) is not None and name in graph), None)
        trained = trained._replace(is_saved_model=True, initializer=initializer)
    return graph, trained, open_checkpoint(trained.checkpoint) if trained.checkpoint is not None else None


def _of_saved_model(folder: str, tags: str | None, signature: str | None) -> tuple[Graph, str | None]:
    """The graph of a SavedModel, and the node that its loader runs."""
    chosen = with_tags(read_saved_model(folder), tags, folder)
    return with_assets(with_signature(chosen.graph, signature, folder), asset_files(chosen)), init_op(chosen)
