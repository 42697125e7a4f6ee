"""Arrays of tensors that a loop writes one element a round, from the first on: outputs of ONNX's Loop."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.exporting.onnx.preparing import Prepared
from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import EXIT, NEXT_ITERATION
from pocketgraph.runtime.unrolling.constant_trip_counts import PASSES, behind, counts, outside

WRITES = {"TensorArrayWriteV3": (1, 3), "TensorListSetItem": (1, 0)}
"""The inputs of a write that are the index and the array."""


def scanned_arrays(prepared: Prepared, carried: Mapping[str, tuple[Endpoint, Endpoint]]) -> dict[str, str]:
    """The nodes that write such arrays, in every round, by the Merge of the loop's variable."""
    found: dict[str, str] = {}
    items = prepared.items
    counters = {
        name for name, (first, last) in carried.items() if counts(prepared.items, prepared.inferred, name, first, last)
    }
    for name, (first, last) in carried.items():
        end = behind(prepared.items, last)
        item = items.get(end.node)
        if item is None or item.node.op not in WRITES:
            continue
        index, array = (behind(prepared.items, item.data[place]) for place in WRITES[item.node.op])
        if array.node != name or index.node not in counters:
            continue
        if _readers(prepared, name) != {item.node.name}:
            continue
        source = items.get(outside(prepared.items, first).node)
        if source is None or source.node.op not in ("TensorArrayV3", "TensorListReserve", "TensorArrayV2"):
            continue
        if not _fills(prepared, source.node.name, index.node, item.node):
            continue
        found[name] = item.node.name
    return found


def _readers(prepared: Prepared, name: str) -> set[str]:
    """Who takes a variable inside of its loop, behind what only passes it on."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        top = waiting.pop()
        for node in prepared.graph.consumers.get(top, ()):
            if node.name in seen or node.name not in prepared.items:
                continue
            seen.add(node.name)
            item = prepared.items[node.name]
            if top not in (endpoint.node for endpoint in item.data):
                continue
            if node.op in PASSES:
                waiting.append(node.name)
            elif node.op not in (*EXIT, *NEXT_ITERATION):
                found.add(node.name)
    return found


def _fills(prepared: Prepared, array: str, counter: str, write: Node) -> bool:
    """Whether the loop goes on as long as the counter is below the array's size, as far as that can be told; or that
    size is none at first, and grows."""
    maker = prepared.items[array].node
    size = prepared.items[array].data[0 if maker.op.startswith("TensorArray") else 1]
    first = prepared.inferred.value(str(outside(prepared.items, size)))
    grows = maker.attr("dynamic_size", False) or write.attr("resize_if_index_out_of_bounds", False)
    if grows and first is not None and not first.any():
        return True
    for item in prepared.items.values():
        if item.node.op != "Less" or behind(prepared.items, item.data[0]).node != counter:
            continue
        limit = outside(prepared.items, item.data[1])
        known, wanted = (prepared.inferred.value(str(e)) for e in (limit, outside(prepared.items, size)))
        if limit == outside(prepared.items, size):
            return True
        if known is not None and wanted is not None and int(known.reshape(-1)[0]) == int(wanted.reshape(-1)[0]):
            return True
    return False
