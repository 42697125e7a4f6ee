"""What a model calls the classes of its scores: in itself, behind what picks from them, or in a file beside it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Sequence

from pocketgraph.datasets.class_labels import NO_LABEL, read_labels
from pocketgraph.datasets.class_scores import SHARES, apart, says_scores
from pocketgraph.datasets.evaluation_dataset import Dataset
from pocketgraph.datasets.sample_reading import Notify
from pocketgraph.errors import PocketgraphError, option
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.freezing.ready_models import ReadyModel, read_model
from pocketgraph.freezing.training_dir import model_path
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import INT32, INT64, STRING
from pocketgraph.graph.model_file_graph import is_litert_file
from pocketgraph.graph.op_traits import GATHERS, SAME_VALUES, TABLE_FILLERS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import infer
from pocketgraph.pages.quantities import counted
from pocketgraph.runtime import Session

ASSETS = ("assets", "assets.extra")
"""Where a SavedModel has files of its own."""
MOST_SHOWN = 5  # classes that a note names
_LABEL_FILE = re.compile(r".*label.*\.(txt|pbtxt)|(model|metadata)\.json", re.IGNORECASE)
_PICKED = GATHERS | {"GatherNd"}  # input 1 says the places
_REPEATED = frozenset({"Tile", "BroadcastTo"})


def class_names(graph: Graph, scores: str) -> list[str]:
    """The name of each class, in the order of the scores; none where nothing in the graph has one for each.

    ::

        best = TopKV2(scores, k)
        names = LookupTableFindV2(table, best:1, none)        filled with (0, "ant"), (1, "bee"), ...
        names = GatherV2(["ant", "bee", ...], best:1, axis)
        names = Tile(["ant", "bee", ...], [batch, 1])         an output beside the scores, as Estimators have it

    What picks may take the logits that the scores are made of, as an Estimator's does.

    Args:
        graph: with what fills its tables.
        scores: the tensor of scores, whose last size is known.
    """
    if node_name(scores) not in graph:
        return []
    before = apart(graph, scores)
    logits = graph.find_producer(before, SAME_VALUES)
    if logits is not None and logits.op in {*SHARES, "LogSoftmax"}:
        before = logits.data_inputs[0]
    found = graph.find_producer(before, SAME_VALUES)
    alike = {node_name(scores), node_name(before), *([] if found is None else [found.name])}
    sizes = infer(graph).shape(canonical(scores)).dims
    count = sizes[-1] if sizes else None
    if count is None:
        return []
    for lookup in graph:
        types = lookup.attrs.get("Tin"), lookup.attrs.get("Tout")
        if lookup.op not in ops_with("table_lookup") or types[0] not in (INT32, INT64) or types[1] is not STRING:
            continue
        if alike & reachable(graph, lookup.data_inputs[1:2], data_only=True, missing_ok=True):
            rows = _rows(graph, lookup)
            if sorted(rows) == list(range(count)):
                return [rows[at] for at in range(count)]
    fitting = [names for names in _constant_names(graph, alike) if len(names) == len({*names}) == count > 1]
    return fitting[0] if len({*map(tuple, fitting)}) == 1 else []


def _constant_names(graph: Graph, alike: set[str]) -> Iterator[list[str]]:
    """The texts in constants that are picked from by what scores say, or that an output repeats for each sample."""
    ends = {found.name for name in graph.outputs if (found := graph.find_producer(name, SAME_VALUES)) is not None}
    for node in graph:
        places = node.data_inputs[1:2] if node.op in _PICKED else ()
        is_picked = alike & reachable(graph, places, data_only=True, missing_ok=True)
        if not is_picked and not (node.op in _REPEATED and (node.name in ends or not graph.consumers.get(node.name))):
            continue
        held = graph.find_producer(node.data_inputs[0], SAME_VALUES | {"ExpandDims"})
        if held is not None and held.op == "Const" and held.attrs["dtype"] is STRING:
            yield [text.decode("utf-8", "replace") for text in held.tensor.numpy().reshape(-1).tolist()]


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
    return _in_file_beside(model, {max(sizes[-1], 2)}, notify)


def labels_beside_detector(
    model: str | os.PathLike[str], graph: Graph, counts: Collection[int], notify: Notify
) -> list[str]:
    """As ``labels_of``, of a detector that tells one of so many classes; of any number where it does not say."""
    about = metadata(graph.extra) if is_litert_file(graph) else None
    return list(about.labels) if about is not None and about.labels else _in_file_beside(model, counts, notify)


def _in_file_beside(model: str | os.PathLike[str], counts: Collection[int], notify: Notify) -> list[str]:
    given = os.path.normpath(model)
    place = os.path.normpath(model_path(given))
    fitting: dict[str, list[str]] = {}
    other: dict[str, int] = {}
    folders = *(os.path.join(place, name) for name in ASSETS), place, os.path.dirname(place) or ".", given
    for folder in folders:
        listed = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for path in (os.path.join(folder, name) for name in listed if _LABEL_FILE.fullmatch(name)):
            names = []
            if os.path.isfile(path):  # a pipe may never end
                with contextlib.suppress(PocketgraphError):  # JSON of something else
                    names = read_labels(path, is_named=False)
            if len(names) - 1 in counts and len(names) not in counts and names[0] == NO_LABEL:  # which counts from 1
                names = names[1:]
            if names and (not counts or len(names) in counts):
                fitting[path] = names
            elif names:
                other[path] = len(names)
        own = os.path.join(folder, f"{os.path.splitext(os.path.basename(place))[0]}_labels.txt")  # as retrain names it
        if fitting:
            fitting = {own: fitting[own]} if own in fitting else fitting
            break
    if len({tuple(names) for names in fitting.values()}) != 1:
        if other and not fitting:
            path, count = next(iter(other.items()))
            wanted = " or ".join(map(str, sorted(counts)))
            notify(f"'{path}' names {counted(count, 'class')}, not {wanted}, so it is not this model's and not taken")
        return []
    path, names = next(iter(fitting.items()))
    why = ", as it has a line for each" if path.lower().endswith("txt") else ", as many as scores"
    why = why if len(counts) == 1 else ""
    notify(f"'{path}' names the classes{why}; {option('labels')} takes another file")
    return names


def _rows(graph: Graph, lookup: Node) -> dict[int, str]:
    """What fills the table of a lookup, where nothing has to be fed for it; else nothing."""
    users = graph.consumers.get(node_name(lookup.data_inputs[0]), ())
    filler = next((user for user in users if user.op.startswith(TABLE_FILLERS) and len(user.data_inputs) > 2), None)
    if filler is None:
        return {}
    try:
        with Session(graph, engine="reference") as session:
            keys, values = session.run(list(filler.data_inputs[1:3]))
    except PocketgraphError:
        return {}
    texts = [text.decode("utf-8", "replace") for text in values.reshape(-1).tolist()]
    return dict(zip(keys.reshape(-1).tolist(), texts, strict=True))


def own_names_of(
    model: Graph | str | os.PathLike[str], graph: Graph, scores: str, data: Dataset, signature: str | None,
    notify: Notify,
) -> list[str] | None:  # fmt: skip
    """What a model itself, or a file beside it, calls its classes, where they judge samples; else None.

    Args:
        model: the model, or its path.
        graph: what was read there.
        scores: the tensor of its scores.
        data: the samples.
        signature: of a SavedModel.
        notify: told in which order classes are taken.
    """
    if not data.classes or node_name(scores) not in graph or not says_scores(graph, scores):
        return None
    said: list[str] = []
    names = class_names(graph, scores)
    if not isinstance(model, Graph):
        names = names or labels_of(None, model, graph, scores, said.append)
        if not names and os.path.isdir(model):  # it may be frozen up to the scores
            with contextlib.suppress(PocketgraphError):
                names = class_names(read_model(model, signature=signature), scores)
    if not judge_samples(names, data):
        return None
    shown = ", ".join(names[:MOST_SHOWN]) + (", …" if len(names) > MOST_SHOWN else "")
    notify(said[0] if said else f"classes are in the model's own order: {shown}; {option('labels')} tells another")
    return names


def judge_samples(names: Sequence[str], data: Dataset) -> bool:
    """Whether names are those of the samples' classes, and no two are alike. Numbers in arrays and tables are places of
    classes, whatever these are called."""
    known, classes = [name.lower() for name in names], {name.lower() for name in data.classes}
    are_places = not data.files and all(map(str.isdecimal, classes))
    return bool(classes) and not are_places and len({*known}) == len(known) and classes <= {*known}


def write_labels(path: str, labels: Sequence[str]) -> None:
    """Writes a labels file, in UTF-8; nothing where there are no labels. A last one that is empty becomes ???."""
    if labels:
        names = [*labels[:-1], labels[-1].strip() or NO_LABEL]
        write_atomically(path, "".join(f"{name}\n" for name in names).encode())
