"""Drops the assignments of a served model that no answer depends on, such as those that count its steps."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.freezing.repair.updates import is_update, updated_variable
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.graph import Graph
from pocketgraph.graph.order import reachable


def without_dead_updates(graph: Graph, outputs: Iterable[str]) -> tuple[Graph, list[str]]:
    """The graph without the assignments whose result nobody computes with, and after which nobody reads the variable;
    and a line for each.

    ::

        count = AssignAddVariableOp(steps, one)
        y = Relu(x, ^count)                        ->   y = Relu(x)

    Any other assignment stays: the answer would be another without it.
    """
    names = list(outputs)
    updates = {node.name: variable for node in graph if is_update(node) and (variable := updated_variable(graph, node))}
    if not updates:
        return graph, []
    computed_with = reachable(graph, names, data_only=True, missing_ok=True)
    dead = {
        name: variable
        for name, variable in updates.items()
        if name not in computed_with and not _is_read_after(graph, name, variable)
    }
    if not dead:
        return graph, []
    kept = [
        node.replace(inputs=[ref for ref in node.inputs if not (ref.startswith("^") and ref[1:] in dead)])
        for node in graph
        if node.name not in dead
    ]
    lines = [f"'{name}' ({graph[name].op} to '{variable}') is dropped" for name, variable in dead.items()]
    return extract_sub_graph(graph.replace(kept), names), lines


def _is_read_after(graph: Graph, update: str, variable: str) -> bool:
    """Whether something takes the variable when an assignment has been made."""
    return any(
        user.name != update and update in reachable(graph, list(user.inputs))
        for user in graph.consumers.get(variable, ())
    )
