"""Finds the graph and the checkpoint in what a person points at: a training directory, or a graph file in one."""

from __future__ import annotations

import os
from typing import NamedTuple

from pocketgraph.errors import FormatError, FreezeError, option, path_of
from pocketgraph.formats.checkpoints.checkpoint import open_checkpoint
from pocketgraph.formats.checkpoints.checkpoint_state import find_prefix, is_checkpoint, step_of
from pocketgraph.formats.content import Kind
from pocketgraph.formats.detect import inside, model_at, of_directory
from pocketgraph.formats.meta_graph import saved_model_file
from pocketgraph.formats.object_graph import KEY

GRAPH_NAMES = ("graph.pb", "graph.pbtxt")
"""What TensorFlow's training loops call the graph; the binary one first, since it is the same and read faster."""

OF_OBJECTS = (
    "TensorFlow 2's tf.train.Checkpoint writes none: in Python, restore it into the model that your code makes, then "
    "tf.saved_model.save(model, 'saved_model')"
)


class TrainedModel(NamedTuple):
    """Where a model comes from that is to be frozen.

    Attributes:
        graph: the graph's file, or the SavedModel's directory; "" of one in memory.
        checkpoint: its prefix; None when there is none.
        has_saver: the graph's file says how the checkpoint was saved (a MetaGraphDef, a SavedModel).
        is_saved_model: it is a SavedModel that was opened, which brings its values along.
        initializer: the node that a SavedModel's loader runs; None for none.
    """

    graph: str
    checkpoint: str | None
    has_saver: bool
    is_saved_model: bool = False
    initializer: str | None = None


def find(path: str | os.PathLike[str], checkpoint: str | os.PathLike[str] | None = None) -> TrainedModel:
    """The graph and checkpoint meant by a path.

    A directory is a SavedModel, for which its file stands too, or a training directory, which a checkpoint in it stands
    for too: the graph is then ``graph.pb`` or ``graph.pbtxt``, else the checkpoint's own ``.meta``, else the newest
    ``.meta``, else the only ``.pb`` or ``.pbtxt`` there. A graph file's checkpoint is the one of its own name (for a
    ``.meta``), else the latest in its directory.

    Args:
        path: a directory, a graph file, or a checkpoint in a training directory.
        checkpoint: which checkpoint, when that is known.

    Raises:
        FormatError: there is no such path, or no checkpoint where one was named.
        FreezeError: a directory holds no graph, or several.
    """
    text = model_path(path)
    prefix = None if checkpoint is None else find_prefix(checkpoint)
    if names_checkpoint(text):
        prefix = prefix or find_prefix(text)
        graph = _graph_in(os.path.dirname(prefix) or ".", prefix)
        return TrainedModel(graph, prefix, graph.endswith(".meta"))
    if not os.path.isdir(text):
        return TrainedModel(text, prefix or _beside(text), text.endswith(".meta"))
    if saved_model_file(text) is not None:
        variables = os.path.join(text, "variables", "variables")
        return TrainedModel(text, prefix or (variables if os.path.isfile(variables + ".index") else None), True)
    if prefix is None and of_directory(text) is Kind.DIRECTORY and (hint := inside(text)):
        raise FormatError("there is no checkpoint in this directory", where=text, hint=hint)
    prefix = prefix or find_prefix(text)
    graph = _graph_in(text, prefix)
    return TrainedModel(graph, prefix, graph.endswith(".meta"))


def model_path(path: str | os.PathLike[str]) -> str:
    """The path; for a SavedModel's own file its directory, which has the values and assets."""
    return model_at(path_of(path))


def names_checkpoint(path: str) -> bool:
    """Whether a path is a checkpoint's prefix or one of its own files, as far as the name tells."""
    name = os.path.basename(path)
    own = name == "checkpoint" or name.endswith(".index") or "-of-" in name
    return is_checkpoint(path) or (own and os.path.isfile(path))


def _beside(file: str) -> str | None:
    own = file[: -len(".meta")] if file.endswith(".meta") else file
    folder = os.path.dirname(file) or "."
    for candidate in (own, folder):
        if candidate == own and not is_checkpoint(own):
            continue
        try:
            return find_prefix(candidate)
        except FormatError:
            continue
    return None


def is_of_objects(prefix: str) -> bool:
    """Whether a checkpoint is one of TensorFlow 2's objects, which have no graph beside them.

    Raises:
        FormatError: it is damaged.
    """
    return KEY in open_checkpoint(prefix)


def _graph_in(folder: str, prefix: str) -> str:
    names = sorted(os.listdir(folder))
    for name in GRAPH_NAMES:
        if name in names:
            return os.path.join(folder, name)
    if os.path.isfile(prefix + ".meta"):
        return prefix + ".meta"
    metas = [name for name in names if name.endswith(".meta")]
    if metas:
        return os.path.join(folder, max(metas, key=lambda name: (step_of(name[: -len(".meta")]), name)))
    graphs = [name for name in names if name.endswith((".pb", ".pbtxt"))]
    if len(graphs) == 1:
        return os.path.join(folder, graphs[0])
    if not graphs:
        elsewhere = f"say where the graph is with {option('input_graph', 'graph_or_path')}"
        raise FreezeError(
            "there is a checkpoint in this directory and no graph (graph.pbtxt, graph.pb or a .meta file)",
            where=folder, hint=f"{elsewhere}; {OF_OBJECTS}" if is_of_objects(prefix) else elsewhere,
        )  # fmt: skip
    raise FreezeError(
        f"there are several graphs in this directory: {', '.join(graphs[:6])}", where=folder,
        hint=f"say which one with {option('input_graph', 'graph_or_path')}",
    )  # fmt: skip
