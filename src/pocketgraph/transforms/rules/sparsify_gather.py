"""Looks mostly empty tables up in hash tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from pocketgraph.errors import PocketgraphError, TransformError
from pocketgraph.formats import open_checkpoint
from pocketgraph.graph import Graph, Node, Tensor, node_name, opdefs
from pocketgraph.graph.dtype import FLOAT, INT32, INT64
from pocketgraph.graph.edit import remove_attributes, replace_matches
from pocketgraph.graph.op_traits import GATHERS
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.constants_of_nodes import checked_constant
from pocketgraph.transforms.parts.sparse_tables import (
    ReaderCounts,
    initializer,
    lookup_nodes,
    saved_slices,
    table_values,
    without,
)
from pocketgraph.transforms.tool import transform

TABLE = Pattern("Identity", [Pattern("Const|Variable|VariableV2", name="table")], name="identity")
TABLE_GATHERS = (
    Pattern("Gather", [TABLE, Pattern("*", name="ids")]),
    Pattern("GatherV2", [TABLE, Pattern("*", name="ids"), Pattern("Const", name="axis")]),
)
log = logging.getLogger("pocketgraph.transforms")


@transform
def sparsify_gather(
    graph: Graph,
    *,
    input_checkpoint: str | None = None,
    group_init_node: str = "group_deps",
    compat: Compat = Compat.FIXED,
) -> Graph:
    """Replaces a ``Gather`` from a mostly empty [N, 1] float table by a look-up in a hash table.

    Given:   ids = Placeholder(dtype=int64)
             t = Const(float [[0.0], [0.5], [0.0], [2.0]])
             read = Identity(t, T=float)
             y = Gather(read, ids, Tparams=float, Tindices=int64)
             ; outputs=y
    Result:  ids = Placeholder(dtype=int64)
             t/indices = Const(int64 [1, 3])
             t/values = Const(float [0.5, 2.0])
             t/HashTable = HashTable(key_dtype=int64, value_dtype=float)
             t/InitializeTable = InitializeTable(t/HashTable, t/indices, t/values, Tkey=int64, Tval=float)
             y/LookupTableFind = LookupTableFind(t/HashTable, ids, y/Const, Tin=int64, Tout=float)
             y/Const = Const(float 0.0)
             y/ExpandDims/Const = Const(int32 -1)
             y = ExpandDims(y/LookupTableFind, y/ExpandDims/Const, T=float)
             group_deps = NoOp(^t/InitializeTable)

    The tables have to be filled before the graph is run, by running ``group_deps`` once; name it among the outputs
    where rules follow that drop what no output needs. Gather and GatherV2 over axis 0 are replaced when their table is
    a constant or a variable behind an Identity.

    Differs from the original: a gather that cannot be replaced, from a table of another shape or type or over another
    axis, is left alone with a warning (there, it is an error), and so is one whose table something else reads (there,
    that loses its input); what a variable's Saver and initializer read stays until strip_unused_nodes takes it out
    (there, they lose inputs); ids may be int32; only variables that are gathered from need a place in the checkpoint.

    Args:
        input_checkpoint: where the values of variables are: a checkpoint's prefix.
        group_init_node: the name of the NoOp that fills the tables, made when there is none.

    Raises:
        FormatError: the checkpoint cannot be read.
        TransformError: a variable's value is not known.
    """
    checkpoint = None
    if input_checkpoint is not None:
        checkpoint = open_checkpoint(os.path.expanduser(input_checkpoint))
    graph = remove_attributes(graph, ["_output_shapes"])
    slices = saved_slices(graph, strict=compat.original)
    rounds = _rounds_of_original if compat.original else _replaced
    for pattern in TABLE_GATHERS:
        graph = rounds(graph, pattern, _Values(checkpoint, slices), group_init_node)
    return graph


class _Values:
    """The tables' values, each checked."""

    def __init__(self, checkpoint: Mapping[str, Tensor] | None, slices: Mapping[str, str]) -> None:
        self.checkpoint = checkpoint
        self.slices = slices

    def of(self, match: Match) -> Tensor:
        """The table that a gather reads.

        Raises:
            TransformError: the gather cannot be replaced, or the values are not known.
        """
        if match.node.op == "GatherV2":
            axis = checked_constant(match["axis"])
            if axis.dtype not in (INT32, INT64) or axis.size != 1:
                raise TransformError("Gather axis was not int32 or int64", where=f"node '{match.node.name}'")
            if axis.numpy().ravel()[0] != 0:
                what = "Transform only applicable to subgraph with GatherV2 over axis 0. Found axis"
                raise TransformError(f"{what} {axis.numpy().ravel()[0]}", where=f"node '{match.node.name}'")
        table = match["table"]
        dtype = table.dtype("dtype")
        if dtype is not FLOAT:
            what = "Transform only applicable to subgraph with 'Const', 'Variable', or 'VariableV2' of dtype 'DT_FLOAT'"
            raise TransformError(f"{what}. Found {table.op} '{table.name}' of {dtype.name}")
        values = table_values(table, self.checkpoint, self.slices)
        if len(values.shape) != 2 or values.shape[1] != 1:
            what = (
                "Transform only applicable to subgraph with 'Const' with tensor of shape [N, 1]. But instead get shape"
            )
            raise TransformError(f"{what} {list(values.shape)}", where=f"node '{table.name}'")
        return values


def _rounds_of_original(graph: Graph, pattern: Pattern, values: _Values, group: str) -> Graph:
    """Goes in rounds, because matches do not share nodes, until one finds nothing."""
    readers = ReaderCounts(graph)
    while True:
        filled: list[str] = []
        gone: list[str] = []

        def rewrite(
            match: Match, used: frozenset[str], filled: list[str] = filled, gone: list[str] = gone
        ) -> list[Node]:
            table, identity = match["table"], match["identity"]
            new = lookup_nodes(match.node, table, values.of(match), match.node.inputs[1], cast=False)
            gone += [table.name, identity.name]
            for ref in identity.inputs:
                readers.add(ref, -1)
            for node in new:
                for ref in node.inputs:
                    readers.add(ref)
            filled.append(initializer(table.name))
            return [match["ids"], *new]

        graph = replace_matches(graph, pattern, rewrite, may_lose_names=True).graph
        graph = _with_group(graph, group, filled)
        for name in filled:
            readers.add(name)
        unread = readers.unread((*graph.outputs, *graph.inputs))
        graph = without(graph, [*gone, *unread], readers)
        if not filled:
            return graph


def _replaced(graph: Graph, pattern: Pattern, values: _Values, group: str) -> Graph:
    """Replaces the gathers whose table nothing else reads, and the tables that are only theirs."""
    filled: dict[str, None] = {}
    outputs = {node_name(ref) for ref in graph.outputs}
    reported: set[str] = set()
    while True:
        before = graph
        gone: set[str] = set()

        def accept(match: Match, graph: Graph = graph) -> bool:
            reason = _obstacle(graph, match, outputs, values)
            if reason and match.node.name not in reported:
                reported.add(match.node.name)
                log.warning("sparsify_gather: '%s' stays: %s", match.node.name, reason)
            return not reason

        def rewrite(match: Match, used: frozenset[str], graph: Graph = graph, gone: set[str] = gone) -> list[Node]:
            gather, table = match.node, match["table"]
            cast = opdefs.attr_or_default(gather, "Tindices") is INT32
            new = lookup_nodes(gather, table, values.of(match), gather.data_inputs[1], cast=cast)
            if initializer(table.name) in graph:  # another gather has brought the table's nodes
                new = [node for node in new if node.name not in graph or node.name == gather.name]
            filled[initializer(table.name)] = None
            new[-1] = new[-1].replace(inputs=[*new[-1].inputs, *gather.control_inputs])
            gone.update(node.name for node in match.nodes[1:])
            return [*match.nodes[1:], *new]

        graph = replace_matches(graph, pattern, rewrite, accept=accept).graph
        if not gone:
            waits = graph[group].inputs if group in graph else ()
            new_tables = [name for name in filled if f"^{name}" not in waits]
            return _with_group(graph, group, new_tables)
        graph = _without_unread(graph, gone & before.nodes.keys(), outputs)


def _obstacle(graph: Graph, match: Match, outputs: set[str], values: _Values) -> str:
    """Why a gather cannot be replaced, or nothing."""
    identity, table = match["identity"], match["table"]
    if any(reader.op not in GATHERS for reader in graph.consumers.get(identity.name, ())):
        return f"something else reads its table '{identity.name}', too"
    if {identity.name, table.name} & outputs or identity.control_inputs:
        return f"its table '{identity.name}' is needed by itself"
    try:
        values.of(match)
    except PocketgraphError as error:
        if table.op == "Const" or values.checkpoint is not None:
            return str(error)
        raise
    return ""


def _without_unread(graph: Graph, candidates: set[str], outputs: set[str]) -> Graph:
    """The graph without those of the candidates that nobody reads, one after the other; what is fed stays."""
    kept = outputs | {node_name(ref) for ref in graph.inputs}
    while True:
        unread = {name for name in candidates - kept if name in graph and not graph.consumers.get(name)}
        unread = {name for name in unread if graph[name].op in ("Const", "Identity", "Variable", "VariableV2")}
        if not unread:
            return graph
        graph = graph.replace(node for node in graph if node.name not in unread)


def _with_group(graph: Graph, group: str, filled: list[str]) -> Graph:
    """The graph with a NoOp that has every table filled."""
    node = graph.nodes.get(group)
    waits = [f"^{name}" for name in filled]
    if node is None or node.op != "NoOp":
        return graph.replace([*graph, Node(group, "NoOp", waits)])
    changed = node.replace(inputs=[*node.inputs, *waits])
    return graph.replace(changed if item is node else item for item in graph) if waits else graph
