"""Lookup tables whose contents a frozen graph does not carry: what fills them, and from which file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats import function_def
from pocketgraph.graph import Graph, Node, Tensor, const, node_name
from pocketgraph.graph.attr import Func
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import FUNCTION_CALLS, TABLE_FILLERS, ops_with

TABLES = ops_with("table")
FROM_FILE = ("InitializeTableFromTextFile", "InitializeTableFromDataset")


class Filler(NamedTuple):
    """What fills a table: the node to run for it, the op that does it, and the file that it reads ("" for none)."""

    run: str
    op: str
    file: str


def with_assets(graph: Graph, files: Mapping[str, str]) -> Graph:
    """The graph of a SavedModel with the names of its asset files as constants, ``assets/words.txt``, where its loader
    would put their full paths.

    TensorFlow 2 keeps such a name in a variable that is assigned when the model is loaded: the reads of it too.

    Args:
        files: the file by the asset tensor's name.
    """
    names = {node_name(tensor): f"assets/{file}" for tensor, file in files.items() if node_name(tensor) in graph}
    if not names:
        return graph
    paths = dict(names)
    for node in graph:
        if node.op == "AssignVariableOp" and len(node.data_inputs) == 2 and node_name(node.data_inputs[1]) in names:
            variable = node_name(node.data_inputs[0])
            for user in graph.consumers.get(variable, ()):
                if user.op == "ReadVariableOp":
                    paths[user.name] = names[node_name(node.data_inputs[1])]

    def change(node: Node) -> Node:
        if node.name not in paths:
            return node
        value = Tensor.from_numpy(np.array(paths[node.name].encode(), object), STRING)
        return const(node.name, value)

    return graph.map_nodes(change)


def unfilled_tables(frozen: Graph, whole: Graph) -> list[str]:
    """One line a table of the frozen graph that nothing fills there.

    Args:
        frozen: the result of freezing.
        whole: the graph that was frozen, with its initializers.
    """
    lines = []
    for table in frozen:
        if table.op not in TABLES:
            continue
        users = frozen.consumers.get(table.name, ())
        if any(user.op.startswith((*TABLE_FILLERS, "LookupTableInsert")) for user in users):
            continue
        fillers = list(fillers_of(whole, table.name))
        if not fillers:
            if table.op.startswith("Mutable"):
                lines.append(
                    f"the lookup table '{table.name}' stays empty: neither the graph nor the checkpoint has its "
                    "contents; give the .meta file that was written beside the checkpoint"
                )
            continue
        filler = fillers[0]
        what = f"the lookup table '{table.name}' stays empty: '{filler.run}' fills it"
        if filler.file:
            what += f" from the file '{filler.file}'"
        what += " and is not in the frozen graph; "
        if filler.file:
            what += f"put {os.path.basename(filler.file)} beside the model and freeze it again, or "
        what += "add it to the output node names and run it once after loading"
        if filler.file:
            what += ", and ship that file with the model"
        lines.append(what)
    return lines


def empty_tables(graph: Graph) -> list[str]:
    """The lookup tables that are read and that nothing in the graph fills, so that no session answers.

    Mutable tables answer without: they give what a lookup says is for missing keys.
    """
    fixed = (node.name for node in graph if node.op in TABLES and not node.op.startswith("Mutable"))
    return [name for name in fixed if graph.consumers.get(name) and not any(fillers_of(graph, name))]


def fillers_of(graph: Graph, table: str) -> Iterator[Filler]:
    """The ops that fill a table, in the graph or in a function that is called with the table.

    Args:
        table: the name of its node, also of one that is in the graph once a call is inlined that makes the table, as
            those of a SavedModel do that was loaded into another one.
    """
    own = table
    while table not in graph and "/" in table:
        table = table.rpartition("/")[0]
    if table != own and (table not in graph or graph[table].op not in FUNCTION_CALLS):
        return
    for node in graph.consumers.get(table, ()):
        if node.op.startswith(TABLE_FILLERS):
            yield Filler(node.name, node.op, _file(node, graph.constant))
            continue
        yield from _in_functions(graph, node, table)


def _in_functions(graph: Graph, call: Node, table: str) -> Iterator[Filler]:
    """The same inside the functions that a call runs, however deep."""
    waiting = [(call.attrs.get("f"), dict(enumerate(call.data_inputs)))]
    seen: set[str] = set()
    while waiting:
        func, given = waiting.pop()
        function = graph.functions.get(func.name) if isinstance(func, Func) else None
        if function is None or function.name in seen:
            continue
        seen.add(function.name)
        try:
            names = function_def.arguments(function)
        except FormatError:
            continue
        places = {name: given[index] for index, name in enumerate(names) if index in given}
        constants = {node.name: node.attrs.get("value") for node in function.nodes if node.op == "Const"}

        def constant(
            ref: str, places: Mapping[str, str] = places, inside: Mapping[str, object] = constants
        ) -> Tensor | None:
            name = ref.partition(":")[0]
            value = graph.constant(places[name]) if name in places else inside.get(name)
            return value if isinstance(value, Tensor) else None

        for node in function.nodes:
            targets = [places.get(ref.partition(":")[0], "") for ref in node.data_inputs]
            if table not in map(node_name, targets):
                continue
            if node.op.startswith(TABLE_FILLERS):
                yield Filler(call.name, node.op, _file(node, constant))
            else:
                waiting.append((node.attrs.get("f"), dict(enumerate(targets))))


def _file(node: Node, constant: Callable[[str], Tensor | None]) -> str:
    """The name of the file that an initializer reads, as far as the graph tells."""
    if not node.op.startswith(FROM_FILE) or len(node.data_inputs) < 2:
        return ""
    value = constant(node.data_inputs[1])
    if not isinstance(value, Tensor) or value.dtype.name != "string" or value.size != 1:
        return "(named only when it runs)"
    text = value.numpy().reshape(-1)[0]
    name = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return os.path.join("assets", os.path.basename(name)) if "/assets/" in f"/{name}" else name
