"""What sparsify_gather is made of: the values of tables, in the graph or in a checkpoint by way of the graph's own
Saver, their new nodes, and the removal of what fed them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.formats.typed_list import in_typed_list
from pocketgraph.graph import Graph, Node, Tensor, const, node_name
from pocketgraph.graph.dtype import FLOAT, INT32, INT64
from pocketgraph.graph.op_traits import REFERENCE_VARIABLES
from pocketgraph.transforms.parts.constants_of_nodes import checked_constant

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


def table_values(node: Node, checkpoint: Mapping[str, Tensor] | None, slices: Mapping[str, str]) -> Tensor:
    """The value of a constant or variable; of a part of a variable only the part.

    Raises:
        TransformError: a variable needs a checkpoint, or the checkpoint does not have it.
    """
    if node.op == "Const":
        return checked_constant(node)
    if checkpoint is None:
        raise TransformError(
            "Checkpoint reader was not initialized", where=f"node '{node.name}'", hint="pass input_checkpoint=PREFIX"
        )
    key = whole_name(node.name)
    if key not in checkpoint:
        raise TransformError(f"the checkpoint has no tensor '{key}'", where=f"node '{node.name}'")
    return _part(checkpoint[key], slices.get(node.name, ""), node.name)


def whole_name(variable: str) -> str:
    """The name under which a partitioned variable is saved: without a last ``/part_3``."""
    head, slash, last = variable.rpartition("/")
    return head if slash and last.startswith("part_") else variable


def saved_slices(graph: Graph, *, strict: bool) -> dict[str, str]:
    """For each variable the part of the saved tensor that it is, as in ``4 1 0,2:0,1``; "" when it is all.

    Args:
        strict: every variable must be among what the graph's Saver restores.

    Raises:
        TransformError: one is not, with ``strict``.
    """
    restores: dict[str, str] = {}
    for node in graph:
        parts = node.name.split("/")
        if len(parts) == 2 and parts[0].startswith("save") and parts[1].startswith("Assign") and len(node.inputs) > 1:
            restores.setdefault(node.inputs[0], node_name(node.inputs[1]))
    found = {}
    for node in graph:
        if node.op in REFERENCE_VARIABLES:
            text = _saved_slice(graph, node.name, restores.get(node.name, ""))
            if text is not None:
                found[node.name] = text
            elif strict:  # the original aborts where nothing restores it
                raise TransformError(f"Unable to find RestoreV2 entry for variable: {node.name}")
    return found


def _saved_slice(graph: Graph, variable: str, restore: str) -> str | None:
    node = graph.nodes.get(restore)
    if node is None or node.op != "RestoreV2" or len(node.inputs) < 3:
        return None
    names, slices = (graph.nodes.get(ref) for ref in node.inputs[1:3])
    if names is None or slices is None:
        return None
    listed, wanted = names.tensor.numpy().ravel().tolist(), whole_name(variable).encode()
    texts = slices.tensor.numpy().ravel().tolist()
    place = listed.index(wanted) if wanted in listed else len(texts)
    return texts[place].decode("utf-8", "replace") if place < len(texts) else None


def _part(tensor: Tensor, text: str, where: str) -> Tensor:
    """The part of a tensor: sizes of the whole and, last, a ``start,length`` or ``-`` for each dimension."""
    if not text:
        return tensor
    *sizes, ranges = text.split(" ")
    try:
        whole = tuple(int(size) for size in sizes)
        spans = [(0, size) if span == "-" else _span(span) for span, size in zip(ranges.split(":"), whole, strict=True)]
    except ValueError:
        raise TransformError(f"'{text}' is no part of a tensor", where=f"node '{where}'") from None
    if whole != tensor.shape or any(
        start < 0 or n < 0 or start + n > size for (start, n), size in zip(spans, whole, strict=True)
    ):
        raise TransformError(
            f"the checkpoint's tensor {list(tensor.shape)} has no part '{text}'", where=f"node '{where}'"
        )
    part: np.ndarray[Any, Any] = tensor.numpy()[tuple(slice(start, start + n) for start, n in spans)]
    return Tensor.from_numpy(part, tensor.dtype)


def _span(text: str) -> tuple[int, int]:
    start, _, length = text.partition(",")
    return int(start), int(length)


NEED_TWO = frozenset({"Assign", "Reshape", "Equal", "Mean", "ScalarSummary"})  # pointless with one input
"""Not a trait: ops that are pointless once one of their two inputs is gone."""


class ReaderCounts:
    """How often each reference is read, as the original counts: by its spelling without ``^``."""

    def __init__(self, graph: Graph) -> None:
        self.counts: dict[str, int] = {}
        for node in graph:
            for ref in node.inputs:
                self.add(ref)

    def add(self, ref: str, by: int = 1) -> int:
        """Counts one reader more, or so many, and gives back how many there are."""
        key = ref.replace("^", "")
        self.counts[key] = self.counts.get(key, 0) + by
        return self.counts[key]

    def unread(self, protected: Iterable[str]) -> list[str]:
        """What lost all its readers, after forgetting about ``protected``."""
        for name in protected:
            self.counts.pop(name, None)
        return [name for name, count in self.counts.items() if count == 0]


def without(graph: Graph, names: list[str], readers: ReaderCounts) -> Graph:
    """The graph without these nodes and what they leave behind.

    References to them are dropped. A ConcatV2 goes on with the values that are left, as an Identity with the last one.

    Raises:
        TransformError: a ConcatV2 loses all its values, or shares the axis that it no longer needs.
    """
    nodes = dict(graph.nodes)
    by_ref: dict[str, set[str]] = {}
    for node in graph:
        for ref in node.inputs:
            by_ref.setdefault(ref.removeprefix("^"), set()).add(node.name)
    place = {name: i for i, name in enumerate(nodes)}
    todo = list(names)
    while todo:
        name = todo.pop()
        # in the graph's order, as what is removed first decides what the counts say later
        touched = sorted({name, *by_ref.pop(name, ())} & nodes.keys(), key=place.__getitem__)
        for other in touched:
            node = nodes[other]
            if other == name and node.op != "RestoreV2":
                todo += [ref.replace("^", "") for ref in node.inputs if readers.add(ref, -1) == 0]
                del nodes[name]
                continue
            inputs = [ref for ref in node.inputs if ref.removeprefix("^") != name]
            if len(inputs) == len(node.inputs):
                continue
            node = node.replace(inputs=inputs)
            if node.op == "ConcatV2":
                node, axis = _shortened(node, readers)
                todo += axis
            nodes[other] = node
            if (node.op in NEED_TWO and len(node.inputs) == 1) or not node.inputs:
                todo.append(other)
    return graph.replace(nodes.values())


def _shortened(concat: Node, readers: ReaderCounts) -> tuple[Node, list[str]]:
    """A ConcatV2 that lost values, and what else is to be removed."""
    count = len(concat.inputs)
    if count > 2:
        return concat.with_attrs(N=count - 1), []
    if count < 2:
        raise TransformError("ConcatV2 should have at least two elements", where=f"node '{concat.name}'")
    axis = concat.inputs[1]
    if readers.counts.get(axis) != 1:
        raise TransformError(
            "Expect axis tensor of ConcatV2 node to only be referenced once", where=f"node '{concat.name}'"
        )
    readers.add(axis, -1)
    return concat.replace(op="Identity", inputs=concat.inputs[:1]).with_attrs(N=None), [axis]
