"""Lookup tables that training fills: their contents are in its checkpoint, as two tensors of keys and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import FreezeError
from pocketgraph.graph import Graph, Node, Shape, Tensor, const
from pocketgraph.kernels.state.dense_hash_tables import used_buckets

MUTABLE, DENSE = "Mutable", "MutableDense"
ENDINGS = ("-keys", "-values")


class ResourceContents(NamedTuple):
    """The node that fills a table, or another resource, and what it needs but that, producers first."""

    node: Node
    needs: tuple[Node, ...]


def has_stored_tables(graph: Graph, store: Mapping[str, Tensor] | None) -> bool:
    """Whether a checkpoint has the contents of a table of the graph, under the names of savers of TensorFlow 1."""
    return store is not None and any(
        node.op.startswith(MUTABLE) and all(f"{node.name}{ending}" in store for ending in ENDINGS) for node in graph
    )


def stored_contents(
    graph: Graph, table: Node, store: Mapping[str, Tensor] | None, keys: Sequence[str] = ()
) -> ResourceContents | None:
    """What fills a table with what a checkpoint has of it; None where that has nothing.

    A dense table is stored with its empty buckets, in an order that only a table of that size can take: it is filled
    with the keys alone.

    Args:
        graph: the graph that the table is in.
        table: its node.
        store: the checkpoint's tensors.
        keys: those of its keys and its values; by default those that savers of TensorFlow 1 give a table.

    Raises:
        FreezeError: what is stored is none of this table's contents.
    """
    names = list(keys) or [f"{table.name}{ending}" for ending in ENDINGS]
    found = [store[name] for name in names if name in store] if store is not None else []
    if not table.op.startswith(MUTABLE) or len(names) != 2 or len(found) != 2:
        return None
    kinds = [table.attr("key_dtype", None), table.attr("value_dtype", None)]
    counts = [tensor.shape[:1] for tensor in found]
    if [tensor.dtype for tensor in found] != kinds or not counts[0] or counts[0] != counts[1]:
        listed = " and ".join(
            f"'{name}' ({each.dtype}{list(each.shape)})" for name, each in zip(names, found, strict=True)
        )
        raise FreezeError(
            f"{listed} are no keys and values of a table of {kinds[0]} and {kinds[1]}", where=f"table '{table.name}'",
            hint="give the checkpoint of this graph",
        )  # fmt: skip
    op = "LookupTableImport"
    if table.op.startswith(DENSE):
        op, buckets = "LookupTableInsert", _without_unused(graph, table, *found)
        if buckets is None:
            return None
        found = buckets
    parts = [const(f"{table.name}/{end[1:]}", tensor) for end, tensor in zip(ENDINGS, found, strict=True)]
    inputs = [table.name, *(part.name for part in parts)]
    op = f"{op}V2" if table.op.endswith("V2") else op
    attrs = {"Tin": found[0].dtype, "Tout": found[1].dtype}
    return ResourceContents(Node(f"{table.name}/fill", op, inputs, attrs), tuple(parts))


def _without_unused(graph: Graph, table: Node, keys: Tensor, values: Tensor) -> list[Tensor] | None:
    """The keys of a dense table and their values, without what marks empty buckets; None where these are not known."""
    unused = [graph.constant(ref) for ref in table.data_inputs]
    marks = [tensor.numpy() for tensor in unused if tensor is not None]
    if len(marks) < len(unused):
        return None
    used = used_buckets(keys.numpy(), marks)
    shape = table.attr("value_shape", None)
    shapes = (marks[0].shape, shape.known if isinstance(shape, Shape) else ())
    return [
        Tensor.from_numpy(np.ascontiguousarray(tensor.numpy()[used]).reshape(-1, *shape), tensor.dtype)
        for tensor, shape in zip((keys, values), shapes, strict=True)
    ]
