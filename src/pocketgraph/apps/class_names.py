"""What a graph calls the classes of its scores: the texts of a lookup table behind what it picks from them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from pocketgraph.errors import PocketgraphError
from pocketgraph.formats.files import write_atomically
from pocketgraph.freezing.ready_models import ReadyModel, read_model
from pocketgraph.freezing.tables import FILLERS
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import INT32, INT64, STRING
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime import Session


def class_names(graph: Graph, scores: str) -> list[str]:
    """The name of each class, in the order of the scores; none where no table of the graph has one for each.

    ::

        best = TopKV2(scores, k)
        names = LookupTableFindV2(table, best:1, none)        filled with (0, "ant"), (1, "bee"), ...

    Args:
        graph: with what fills its tables.
        scores: the tensor of scores, whose last size is known.
    """
    if node_name(scores) not in graph:
        return []
    for lookup in graph:
        types = lookup.attrs.get("Tin"), lookup.attrs.get("Tout")
        if lookup.op not in ops_with("table_lookup") or types[0] not in (INT32, INT64) or types[1] is not STRING:
            continue
        if node_name(scores) in reachable(graph, lookup.data_inputs[1:2], data_only=True, missing_ok=True):
            rows = _rows(graph, lookup)
            sizes = infer(graph).shape(canonical(scores)).dims
            if sizes and sizes[-1] is not None and sorted(rows) == list(range(sizes[-1])):
                return [rows[at] for at in range(sizes[-1])]
    return []


def class_names_of_model(
    model: str | os.PathLike[str], found: ReadyModel, scores: str, signature: str | None
) -> list[str]:
    """``class_names`` of a model whose graph was frozen up to the scores, and so without what names classes.

    Args:
        model: the path.
        found: what was made of it for these scores.
        scores: the tensor.
        signature: of a SavedModel.
    """
    names = class_names(found.graph, scores)
    if not names and found.freezing is not None and found.freezing.outputs:
        with contextlib.suppress(PocketgraphError):
            names = class_names(read_model(model, signature=signature), scores)
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


def write_labels(path: str, labels: Sequence[str] | str | os.PathLike[str]) -> None:
    """Writes a labels file: the names, or what another such file holds; nothing where there are none."""
    if isinstance(labels, (str, os.PathLike)):
        with open(labels, "rb") as file:
            write_atomically(path, file.read())
    elif labels:
        write_atomically(path, "".join(f"{label}\n" for label in labels).encode())
