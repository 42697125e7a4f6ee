"""What a model calls the classes of its scores, in a lookup table behind what picks from them or a file beside it."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Sequence

from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.datasets.class_scores import HANDS_ON, SHARES, apart, says_scores
from pocketgraph.datasets.sample_reading import Notify
from pocketgraph.errors import PocketgraphError, option
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.freezing.ready_models import ReadyModel, read_model
from pocketgraph.freezing.tables import FILLERS
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import INT32, INT64, STRING
from pocketgraph.graph.model_file_graph import is_litert_file
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime import Session

ASSETS = ("assets", "assets.extra")
"""Where a SavedModel has files of its own."""


def class_names(graph: Graph, scores: str) -> list[str]:
    """The name of each class, in the order of the scores; none where no table of the graph has one for each.

    ::

        best = TopKV2(scores, k)
        names = LookupTableFindV2(table, best:1, none)        filled with (0, "ant"), (1, "bee"), ...

    What picks may take the logits that the scores are made of, as an Estimator's does.

    Args:
        graph: with what fills its tables.
        scores: the tensor of scores, whose last size is known.
    """
    if node_name(scores) not in graph:
        return []
    before = apart(graph, scores)
    logits = graph.find_producer(before, HANDS_ON)
    if logits is not None and logits.op in {*SHARES, "LogSoftmax"}:
        before = logits.data_inputs[0]
    found = graph.find_producer(before, HANDS_ON)
    alike = {node_name(scores), node_name(before), *([] if found is None else [found.name])}
    for lookup in graph:
        types = lookup.attrs.get("Tin"), lookup.attrs.get("Tout")
        if lookup.op not in ops_with("table_lookup") or types[0] not in (INT32, INT64) or types[1] is not STRING:
            continue
        if alike & reachable(graph, lookup.data_inputs[1:2], data_only=True, missing_ok=True):
            rows = _rows(graph, lookup)
            sizes = infer(graph).shape(canonical(scores)).dims
            if sizes and sizes[-1] is not None and sorted(rows) == list(range(sizes[-1])):
                return [rows[at] for at in range(sizes[-1])]
    return []


def class_names_of_model(
    model: str | os.PathLike[str], found: ReadyModel, scores: str, signature: str | None, notify: Notify | None = None
) -> list[str]:
    """``class_names`` of a model whose graph was frozen up to the scores, and so without what names classes; else the
    names in a file of labels beside it.

    Args:
        model: the path.
        found: what was made of it for these scores.
        scores: the tensor.
        signature: of a SavedModel.
        notify: told which file of labels is taken; without it none is.
    """
    names = class_names(found.graph, scores)
    if not names and found.freezing is not None and found.freezing.outputs:
        with contextlib.suppress(PocketgraphError):
            names = class_names(read_model(model, signature=signature), scores)
    if names or notify is None or node_name(scores) not in found.graph or not says_scores(found.graph, scores):
        return names
    return labels_beside(model, found.graph, scores, notify)


def labels_of(
    labels: str | None, model: str | os.PathLike[str], graph: Graph, scores: str, notify: Notify
) -> list[str]:
    """The names of the classes of a classifier: those in the file that the caller names; else of a LiteRT file's
    metadata, of a table of the graph, or of a file of labels beside the model.

    Args:
        labels: the path of a file; None or "" where the caller names none.
        model: the path of the model.
        graph: what was read there.
        scores: the tensor of its scores.
        notify: told which file of labels is taken.
    """
    if labels:
        return read_labels(labels)
    about = metadata(graph.extra) if is_litert_file(graph) else None
    return (
        list(about.labels if about is not None else ())
        or class_names(graph, scores)
        or labels_beside(model, graph, scores, notify)
    )


def labels_beside(model: str | os.PathLike[str], graph: Graph, scores: str, notify: Notify) -> list[str]:
    """The names in a file of labels among a SavedModel's assets or beside a model; none where no such file, or several
    different ones, name as many classes as there are scores. One score may be for the second of two."""
    if node_name(scores) not in graph:
        return []
    sizes = infer(graph).shape(canonical(scores)).dims
    if not sizes or sizes[-1] is None:
        return []
    count = max(sizes[-1], 2)
    place = os.path.normpath(model)
    fitting: dict[str, list[str]] = {}
    for folder in (*(os.path.join(place, name) for name in ASSETS), place, os.path.dirname(place)):
        found = sorted(glob.glob(os.path.join(glob.escape(folder), "*label*.txt")))
        for path in filter(os.path.isfile, found):  # a pipe may never end
            with contextlib.suppress(PocketgraphError):
                names = read_labels(path)
                if len(names) == count:
                    fitting[path] = names
        if fitting:
            break
    if len({tuple(names) for names in fitting.values()}) != 1:
        return []
    path, names = next(iter(fitting.items()))
    notify(f"'{path}' names the classes, as it has a line for each; {option('labels')} takes another file")
    return names


def _rows(graph: Graph, lookup: Node) -> dict[int, str]:
    """What fills the table of a lookup, where nothing has to be fed for it; else nothing."""
    users = graph.consumers.get(node_name(lookup.data_inputs[0]), ())
    filler = next((user for user in users if user.op.startswith(FILLERS) and len(user.data_inputs) > 2), None)
    if filler is None:
        return {}
    try:
        with Session(graph, engine="reference") as session:
            keys, values = session.run(list(filler.data_inputs[1:3]))
    except PocketgraphError:
        return {}
    texts = [text.decode("utf-8", "replace") for text in values.reshape(-1).tolist()]
    return dict(zip(keys.reshape(-1).tolist(), texts, strict=True))


def judging_labels(path: str, names: Sequence[str], classes: Sequence[str]) -> str | None:
    """A labels file, written of a model's own names where each class of the samples is one of them; else None.

    Without it, classes would be taken to be in alphabetical order.

    Args:
        path: where the file goes.
        names: of the classes, in the order of the scores.
        classes: the name of each sample's class.
    """
    known = [name.lower() for name in names]
    if not classes or len({*known}) < len(known) or not {name.lower() for name in classes} <= {*known}:
        return None
    write_labels(path, names)
    return path


def write_labels(path: str, labels: Sequence[str] | str | os.PathLike[str]) -> None:
    """Writes a labels file: the names, or what another such file holds; nothing where there are none."""
    if isinstance(labels, (str, os.PathLike)):
        with open(labels, "rb") as file:
            write_atomically(path, file.read())
    elif labels:
        write_atomically(path, "".join(f"{label}\n" for label in labels).encode())
