"""The nodes that look a mostly empty table up in a hash table, in place of gathering from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.formats.typed_list import in_typed_list
from pocketgraph.graph import Node, Tensor, const
from pocketgraph.graph.dtype import FLOAT, INT32, INT64

ALMOST_ZERO = 1e-5  # entries of a lesser magnitude are left out


def sparse(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The rows (int64) of a column [N, 1] that are not almost 0, and their values; one pair (0, 0.0) when all are."""
    column = values.reshape(-1)
    rows = np.flatnonzero(np.abs(column) >= ALMOST_ZERO).astype(np.int64)
    if not rows.size:
        return np.zeros(1, np.int64), np.zeros(1, np.float32)
    return rows, column[rows]


def lookup_nodes(gather: Node, table: Node, values: Tensor, ids: str, *, cast: bool) -> list[Node]:
    """What takes the place of a Gather from a table; the last one has the Gather's name.

    Args:
        table: the node that held the table.
        values: the table, float32 [N, 1].
        ids: what the Gather looked up.
        cast: whether ``ids`` are int32, which tables do not take.
    """
    rows, entries = sparse(values.numpy())
    types = {"Tkey": INT64, "Tval": FLOAT}
    parts = {"indices": const(f"{table.name}/indices", rows), "values": const(f"{table.name}/values", entries)}
    kinds = {"key_dtype": INT64, "value_dtype": FLOAT}
    hash_table = Node(f"{table.name}/HashTable", "HashTable", (), kinds)
    names = [hash_table.name, *(part.name for part in parts.values())]
    filled = Node(initializer(table.name), "InitializeTable", names, types)
    default = const(f"{gather.name}/Const", np.float32(0))
    found = Node(
        f"{gather.name}/LookupTableFind",
        "LookupTableFind",
        [hash_table.name, f"{gather.name}/Cast" if cast else ids, default.name],
        {"Tin": INT64, "Tout": FLOAT},
    )
    casts = [Node(f"{gather.name}/Cast", "Cast", [ids], {"SrcT": INT32, "DstT": INT64})] if cast else []
    axis = const(f"{gather.name}/ExpandDims/Const", in_typed_list(Tensor.from_numpy(np.asarray(-1, np.int32))))
    widened = Node(gather.name, "ExpandDims", [found.name, axis.name], {"T": FLOAT})
    return [*parts.values(), hash_table, filled, *casts, found, default, axis, widened]


def initializer(table: str) -> str:
    """The name of the node that fills a table."""
    return f"{table}/InitializeTable"
