"""Which array of tensors a handle, a flow or a list leads back to, and what is written into it."""

from __future__ import annotations

from collections.abc import Iterator

from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred

PASSES = ops_with("passes", "enter", "switch", "merge", "exit", "next_iteration")
"""Ops through which an array goes on its way."""
WRITES = {
    "TensorArrayWriteV3": (0, 2, 0), "TensorArrayScatterV3": (0, 2, 1), "TensorArraySplitV3": (0, 1, 1),
    "TensorListSetItem": (0, 2, 0),
}  # fmt: skip
"""Of what writes into an array: which input is the array and which the value, and how many axes the value has more."""
READS = {
    "TensorArrayReadV3": 0, "TensorListGetItem": 0, "TensorArrayGatherV3": 1, "TensorListGather": 1,
    "TensorListStack": 1,
}  # fmt: skip
"""Of what reads from an array: how many axes the result has more than an element."""

SIZES = {"TensorArrayV3": 0, "TensorListReserve": 1}
"""Of what makes an array: which input is the number of its elements."""
COUNTS = ("TensorArraySizeV3", "TensorListLength")
"""Not a trait: what tells how many elements an array has."""


def origin(graph: Graph, ref: str) -> str:
    """The node that made the array; "" where it comes from outside."""
    node = graph.find_producer(ref, PASSES | {"TensorListSetItem", "TensorListResize"})
    return "" if node is None else node.name


def written(graph: Graph) -> dict[str, list[tuple[str, int]]]:
    """For each array the tensors that are written into it, and how many axes they have more than an element."""
    found: dict[str, list[tuple[str, int]]] = {}
    for node in graph:
        place = WRITES.get(node.op)
        if place is not None and len(node.data_inputs) > place[1]:
            array = origin(graph, canonical(node.data_inputs[place[0]]))
            found.setdefault(array, []).append((canonical(node.data_inputs[place[1]]), place[2]))
        elif node.op == "TensorListFromTensor":
            found.setdefault(node.name, []).append((canonical(node.data_inputs[0]), 1))
    return found


def size(graph: Graph, inferred: Inferred, array: str) -> int | None:
    """How many elements an array has, by the node that made it; None where that is not known, or changes."""
    node = graph.nodes.get(array)
    if node is None or node.attr("dynamic_size", False):
        return None
    if node.op == "TensorListFromTensor":
        rows = inferred.shape(canonical(node.data_inputs[0]))
        return rows[0] if rows.dims else None
    place = SIZES.get(node.op)
    count = None if place is None else inferred.value(canonical(node.data_inputs[place]))
    return None if count is None else int(count.reshape(-1)[0])


def reads(graph: Graph) -> Iterator[tuple[str, str, int]]:
    """What reads from arrays: its name, the array, and how many axes the result has more than an element."""
    for node in graph:
        if node.op in READS:
            yield node.name, origin(graph, canonical(node.data_inputs[0])), READS[node.op]
