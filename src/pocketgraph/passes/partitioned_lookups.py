"""Makes one lookup of a table that was cut into partitions, as partitioned variables freeze to.

``tf.nn.embedding_lookup`` sorts ids by the partition that has their row, gathers from each, and stitches the rows
together. Which row of which partition an id means (strategy "mod" or "div") is computed with its own arithmetic, for
every id there is; the rows in that order are the table that was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import DType, Graph, Node, node_name, parse_ref
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.groups import closure
from pocketgraph.graph.node import const
from pocketgraph.graph.op_traits import PASSES, SELECTS
from pocketgraph.graph.tensor import Array
from pocketgraph.passes.constant_values import ConstantValues

_STITCHES = frozenset({"DynamicStitch", "ParallelDynamicStitch"})
_OF_IDS = PASSES | SELECTS | {"FloorDiv", "FloorMod", "Sub", "AddV2", "Add", "Maximum", "Less", "Cast"}
"""Not a trait: what the strategies compute of an id alone, each for itself."""


class _PartitionedLookup(NamedTuple):
    """What a lookup in partitions takes: the ids, in any order; the row of each in its partition; which that is; and
    the partitions."""

    ids: str
    dtype: DType
    rows: str
    partition: str
    tables: list[Array]


def with_joined_tables(graph: Graph) -> Graph:
    """The graph in which such lookups take the joined table; the same graph if there is none.

    Given:   ids = Placeholder(dtype=int32, shape=[?])
             two = Const(int32 2)
             place = FloorMod(ids, two, T=int32)
             row = FloorDiv(ids, two, T=int32)
             size = Size(ids, T=int32)
             zero = Const(int32 0)
             one = Const(int32 1)
             count = Range(zero, size, one)
             rows = DynamicPartition(row, place, num_partitions=2, T=int32)
             order = DynamicPartition(count, place, num_partitions=2, T=int32)
             evens = Const(float[2,1] [[0], [2]])
             odds = Const(float[2,1] [[1], [3]])
             a = GatherV2(evens, rows, zero, Tparams=float, Tindices=int32, Taxis=int32)
             b = GatherV2(odds, rows:1, zero, Tparams=float, Tindices=int32, Taxis=int32)
             y = ParallelDynamicStitch(order, order:1, a, b, N=2, T=float)
    Result:  ids = Placeholder(dtype=int32, shape=[?])
             y/table = Const(float[4,1] [[0], [1], [2], [3]])
             y/axis = Const(int32 0)
             y = GatherV2(y/table, ids, y/axis, Tparams=float, Tindices=int32, Taxis=int32)
    """
    joined: dict[str, list[Node]] = {}
    for node in graph:
        if (
            node.op not in _STITCHES
            or node.control_inputs
            or f"{node.name}/table" in graph
            or f"{node.name}/axis" in graph
        ):
            continue
        lookup = _lookup_of(graph, node)
        table = _joined(graph, lookup) if lookup is not None else None
        if lookup is not None and table is not None:
            joined[node.name] = _gather(node, lookup, table)
    if not joined:
        return graph
    led = [name for stitch in joined for name in map(node_name, graph[stitch].inputs)]
    return _without_unused(graph.replace([each for node in graph for each in joined.get(node.name, [node])]), led)


def _without_unused(graph: Graph, names: list[str]) -> Graph:
    """The graph without those of these nodes that nobody takes any more, and what only they took."""
    outputs = {node_name(name) for name in graph.outputs}
    users = {name: {user.name for user in graph.consumers.get(name, ())} for name in graph.nodes}
    unused: set[str] = set()
    while names:
        name = names.pop()
        if name in unused or name in outputs or not users[name] <= unused or graph[name].op.startswith("Placeholder"):
            continue
        unused.add(name)
        names += map(node_name, graph[name].inputs)
    return graph.replace([node for node in graph if node.name not in unused])


def _gather(stitch: Node, lookup: _PartitionedLookup, table: Array) -> list[Node]:
    values, axis = const(f"{stitch.name}/table", table), const(f"{stitch.name}/axis", np.int32(0))
    attrs = {"Tparams": stitch.attrs["T"], "Tindices": lookup.dtype, "Taxis": INT32}
    return [values, axis, Node(stitch.name, "GatherV2", [values.name, lookup.ids, axis.name], attrs, stitch.device)]


def _lookup_of(graph: Graph, stitch: Node) -> _PartitionedLookup | None:
    """What a stitch puts together, where that is what partitions gave for ids, in the order of the ids."""
    count = len(stitch.data_inputs) // 2
    order = _partitioned(graph, stitch.data_inputs[:count])
    gathers = [graph.find_producer(ref, PASSES) for ref in stitch.data_inputs[count:]]
    tables, taken = [], []
    for gather in gathers:
        table = graph.constant(gather.data_inputs[0]) if gather is not None and _is_of_rows(graph, gather) else None
        if gather is None or table is None or not table.shape:
            return None
        tables.append(table.numpy())
        taken.append(gather.data_inputs[1])
    rows = _partitioned(graph, taken)
    if order is None or rows is None or order.data_inputs[1] != rows.data_inputs[1]:
        return None
    size = _counted(graph, order.data_inputs[0])
    if size is None or len({(table.shape[1:], table.dtype) for table in tables}) != 1:
        return None
    return _PartitionedLookup(size.data_inputs[0], size.dtype("T"), rows.data_inputs[0], rows.data_inputs[1], tables)


def _is_of_rows(graph: Graph, node: Node) -> bool:
    if node.op != "GatherV2":
        return node.op == "Gather"
    axis = graph.constant(node.data_inputs[2])
    return axis is not None and not axis.numpy().any() and not node.attr("batch_dims", 0)


def _partitioned(graph: Graph, refs: Sequence[str]) -> Node | None:
    """The DynamicPartition whose results these are, all and in their order."""
    node = graph.nodes.get(node_name(refs[0])) if refs else None
    if node is None or node.op != "DynamicPartition" or node.attr("num_partitions", 0) != len(refs):
        return None
    return node if [parse_ref(ref)[:2] for ref in refs] == [(node.name, port) for port in range(len(refs))] else None


def _counted(graph: Graph, ref: str) -> Node | None:
    """The Size up to which a Range counts from 0 on."""
    node = graph.nodes.get(node_name(ref))
    if node is None or node.op != "Range":
        return None
    start, delta = (graph.constant(node.data_inputs[index]) for index in (0, 2))
    size = graph.find_producer(node.data_inputs[1], PASSES | {"Cast"})
    if start is None or delta is None or start.numpy() != 0 or delta.numpy() != 1 or size is None or size.op != "Size":
        return None
    return size


def _joined(graph: Graph, lookup: _PartitionedLookup) -> Array | None:
    """The table that was cut; None where the partitions hold other rows than one for each id."""
    total = sum(len(table) for table in lookup.tables)
    if not (_is_of_ids(graph, lookup, lookup.rows) and _is_of_ids(graph, lookup, lookup.partition)):
        return None
    every = const(node_name(lookup.ids), np.arange(total), lookup.dtype)
    values = ConstantValues({**graph.nodes, every.name: every}, largest=total)
    rows, partitions = values.value(lookup.rows), values.value(lookup.partition)
    if rows is None or partitions is None or rows.shape != (total,) or partitions.shape != (total,):
        return None
    sizes = np.array([len(table) for table in lookup.tables])
    if not np.all((partitions >= 0) & (partitions < len(sizes))):
        return None
    if not np.all((rows >= 0) & (rows < sizes[partitions])):
        return None
    places = np.concatenate(([0], np.cumsum(sizes)[:-1]))[partitions] + rows
    return np.concatenate(lookup.tables)[places] if len(np.unique(places)) == total else None


def _is_of_ids(graph: Graph, lookup: _PartitionedLookup, ref: str) -> bool:
    """Whether a tensor is computed of the ids and single numbers, each element by itself."""
    own = graph.nodes.keys() - {node_name(lookup.ids)}
    before = closure([node_name(ref)], lambda name: map(node_name, graph[name].data_inputs), own.__contains__)
    return all(graph[at].op in _OF_IDS or (graph[at].op == "Const" and graph[at].tensor.size == 1) for at in before)
