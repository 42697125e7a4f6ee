"""Puts what fills lookup tables into a frozen graph, so that it answers without a step to be run first."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.formats.files import opened
from pocketgraph.freezing.savers import restored_key
from pocketgraph.freezing.stored_tables import MUTABLE, ResourceContents, stored_contents
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.freezing.tables import FROM_FILE, TABLES, fillers_of
from pocketgraph.graph import DType, Graph, Node, Tensor, const, node_name, opdefs
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import PASSES, STATE_OR_RANDOM, TABLE_FILLERS
from pocketgraph.kernels.state.table_files import table_columns
from pocketgraph.passes.inlining import inlined

VOCABULARY_SUFFIXES = (".txt", ".tsv", ".csv", ".vocab", ".voc", ".dict")
"""What files of words end in that are read beside a model, whose name for them nobody vouches for."""
WAIT = "tables_are_filled"
NEW_NODE = "/filled"
"""What may not stand before a filler: its contents would be others in each run, or not be in the graph."""


def with_table_contents(frozen: Graph, whole: Graph, folder: str, store: Mapping[str, Tensor] | None = None) -> Graph:
    """The frozen graph with the fillers of its lookup tables, which every use of a table waits for.

    TensorFlow fills a table that is full already with nothing, so that the filler may run in each step. A filler that
    reads a file of the SavedModel's ``assets`` gets the file's lines as constants in its place, and one that a saver
    runs, as for tables that training fills, what the checkpoint has.

    ::

        table = HashTableV2()                    table = HashTableV2()
        y = LookupTableFindV2(table, x, none)    fill = InitializeTableV2(table, keys, values)
                                                 y = LookupTableFindV2(table, x, none, ^fill)

    Args:
        frozen: what was frozen.
        whole: what it was frozen from, with its initializers.
        folder: the SavedModel's directory, whose assets may be read, or that of another model, beside which the file
            may be; "" for none.
        store: the checkpoint's tensors.

    Returns:
        The same graph where nothing could be added: tables that are filled from elsewhere stay as they are.
    """
    for table in [node for node in frozen if node.op in TABLES]:
        users = frozen.consumers.get(table.name, ())
        if not users or any(node.op.startswith(TABLE_FILLERS) for node in users):
            continue
        found = _filler(whole, table, folder, store) or stored_contents(whole, table, store)
        if found is not None:
            frozen = with_contents(frozen, table, found)
    return frozen


def with_stored_tables(graph: Graph, store: Mapping[str, Tensor]) -> Graph:
    """A graph with what a checkpoint has of the tables that training fills, behind each of them."""
    filled = graph
    for table in [node for node in graph if node.op.startswith(MUTABLE)]:
        found = _filler(graph, table, "", store) or stored_contents(graph, table, store)
        if found is not None:
            filled = with_contents(filled, table, found)
    return filled


def lookups_without_filler(graph: Graph) -> list[Node]:
    """The tables that a graph fills in a step of its own, which its lookups do not wait for."""
    return [
        node for node in graph
        if node.op in TABLES and any(user.op.startswith(TABLE_FILLERS) for user in graph.consumers.get(node.name, ()))
        and not _is_waited_for(graph, node)
    ]  # fmt: skip


def _is_waited_for(graph: Graph, table: Node) -> bool:
    """Whether what reads a table waits for what fills it."""
    users = graph.consumers.get(table.name, ())
    fillers = {f"^{user.name}" for user in users if user.op.startswith(TABLE_FILLERS)}
    readers = [user for user in users if not user.op.startswith(TABLE_FILLERS)]
    return all(not fillers.isdisjoint(user.inputs) for user in readers)


def with_waiting_lookups(graph: Graph, folder: str) -> Graph:
    """A frozen graph whose lookups wait for what fills their tables, which else is a step to be run first.

    Args:
        folder: where the model's file is, beside which a file of words may be; "" for nowhere.
    """
    for table in lookups_without_filler(graph):
        found = _filler(graph, table, folder)
        if found is not None:
            graph = with_contents(graph, table, found)
    return graph


def _filler(
    whole: Graph, table: Node, folder: str, store: Mapping[str, Tensor] | None = None
) -> ResourceContents | None:
    """What fills a table, with functions inlined and files read; None where that is not known before the run."""
    found = next(fillers_of(whole, table.name), None)
    if found is None:
        return None
    try:
        last = _free(whole, WAIT)
        waiting = whole.replace([*whole, Node(last, "NoOp", [f"^{found.run}"], {})])
        part = inlined(extract_sub_graph(waiting, [last]), [last])
    except PocketgraphError:
        return None
    for node in part:
        if node.op.startswith(TABLE_FILLERS) and node.data_inputs:
            filled = part.find_producer(node.data_inputs[0], PASSES)
            if filled is not None and filled.name == table.name:
                node = node.replace(inputs=[table.name, *node.inputs[1:]])
                break
    else:
        return None
    if node.op.startswith(FROM_FILE):
        return _of_file(part, node, table, folder)
    keys = [restored_key(part, ref) for ref in node.data_inputs[1:]]
    if all(key is not None for key in keys):
        return stored_contents(part, table, store, [key for key in keys if key is not None])
    needs = _needs(part, node)
    return None if needs is None else ResourceContents(node.replace(inputs=node.data_inputs), needs)


def _needs(part: Graph, filler: Node) -> tuple[Node, ...] | None:
    """The producers of keys and values; None where one of them differs from run to run."""
    wanted: set[str] = set()
    for name in closure(map(node_name, filler.data_inputs[1:]), lambda name: map(node_name, part[name].data_inputs)):
        op = part[name].op if name in part else "Placeholder"
        if op.startswith("Placeholder") or op in STATE_OR_RANDOM or opdefs.is_stateful(op):
            return None
        wanted.add(name)
    return tuple(node.replace(inputs=node.data_inputs) for node in part if node.name in wanted)


def _of_file(part: Graph, filler: Node, table: Node, folder: str) -> ResourceContents | None:
    """A filler with the lines of an asset as constants."""
    name = part.constant(filler.data_inputs[1]) if len(filler.data_inputs) > 1 else None
    kinds = table.attr("key_dtype", None), table.attr("value_dtype", None)
    keys, values = kinds
    if not folder or name is None or name.size != 1 or not isinstance(keys, DType) or not isinstance(values, DType):
        return None
    text = name.numpy().reshape(-1)[0]
    base = os.path.basename(text.decode("utf-8", "replace"))
    path = os.path.join(folder, "assets", base)
    if not os.path.exists(path) and base.lower().endswith(VOCABULARY_SUFFIXES):
        path = os.path.join(folder, base)  # beside a model that is no SavedModel
    try:
        with opened(path) as file:
            lines = file.read()
        delimiter = opdefs.attr_or_default(filler, "delimiter")
        columns = table_columns(
            lines,
            (keys, values),
            (int(filler.attr("key_index", 0)), int(filler.attr("value_index", 0))),
            size=int(filler.attr("vocab_size", -1)),
            delimiter=delimiter if isinstance(delimiter, bytes) else b"\t",
            where=path,
        )
    except (OSError, RunError, ValueError):
        return None
    listed = [
        const(f"{table.name}/{name}", Tensor.from_numpy(column, kind))
        for name, column, kind in zip(("keys", "values"), columns, (keys, values), strict=True)
    ]
    op = "InitializeTableV2" if table.op.endswith("V2") else "InitializeTable"
    inputs = [filler.data_inputs[0], *(node.name for node in listed)]
    return ResourceContents(Node(filler.name, op, inputs, {"Tkey": keys, "Tval": values}), tuple(listed))


def with_contents(frozen: Graph, table: Node, filler: ResourceContents) -> Graph:
    """The graph with what fills a resource behind it; every use of the resource waits for that."""
    names = {node.name: _free(frozen, node.name) for node in (*filler.needs, filler.node)}

    def renamed(node: Node) -> Node:
        return node.replace(name=names[node.name], inputs=[_renamed(ref, names) for ref in node.inputs], device="")

    new = [renamed(node) for node in (*filler.needs, filler.node)]
    waits = f"^{new[-1].name}"
    users = {node.name for node in frozen.consumers.get(table.name, ())}
    nodes: list[Node] = []
    for node in frozen:
        nodes.append(node.replace(inputs=[*node.inputs, waits]) if node.name in users else node)
        if node.name == table.name:
            nodes.extend(new)
    return frozen.replace(nodes)


def _renamed(ref: str, names: dict[str, str]) -> str:
    name = node_name(ref)
    return names[name] + ref[len(name) :] if name in names and ref.startswith(name) else ref


def _free(graph: Graph, name: str) -> str:
    while name in graph:
        name += NEW_NODE
    return name
