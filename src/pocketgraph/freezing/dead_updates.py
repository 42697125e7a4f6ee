"""Drops assignments that no answer depends on: those that count a served model's steps, those to what is constant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pocketgraph.freezing.graph_variables import REFERENCE_CARRIERS
from pocketgraph.freezing.repair.updates import assigning_nothing, is_update, updated_variable
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.op_traits import NEXT_ITERATION, PASSES_OR_ROUTES
from pocketgraph.graph.order import MERGES, descendants, reachable


def without_dead_updates(graph: Graph, outputs: Iterable[str]) -> tuple[Graph, dict[str, str]]:
    """The graph without the assignments whose result no answer is computed with, and after which none reads the
    variable, itself or for another assignment that stays; and a line for each, by its name.

    ::

        count = AssignAddVariableOp(steps, one)
        y = Relu(x, ^count)                        ->   y = Relu(x)

    Any other assignment stays: the answer would be another without it.
    """
    names = list(outputs)
    updates = {node.name: variable for node in graph if is_update(node) and (variable := updated_variable(graph, node))}
    if not updates:
        return graph, {}
    live = _live_updates(graph, names, updates)
    dead = {name: variable for name, variable in updates.items() if name not in live}
    if not dead:
        return graph, {}
    lines = {name: f"'{name}' ({graph[name].op} to '{variable}') is dropped" for name, variable in dead.items()}
    graph, rest = assigning_nothing(graph, dead)
    passed = {name: graph[name].data_inputs[0] for name in rest}
    kept = [node.without_waits(rest) for node in graph if node.name not in rest]
    return extract_sub_graph(rename_inputs(graph.replace(kept), passed), names), lines


def _live_updates(graph: Graph, outputs: Collection[str], updates: Mapping[str, str]) -> set[str]:
    """Those of the assignments that outputs depend on; Keras 3's layers count their seed, one on top of the other."""
    live: set[str] = set()
    computed_with = reachable(graph, outputs, data_only=True, missing_ok=True)
    while True:
        found = {
            name
            for name in updates.keys() - live
            if name in computed_with or _is_read_after(graph, name, updates[name], computed_with)
        }
        if not found:
            return live
        live |= found
        computed_with |= reachable(graph, sorted(found), data_only=True)


def _is_read_after(graph: Graph, update: str, variable: str, computed_with: Collection[str]) -> bool:
    """Whether one of these nodes takes the variable when an assignment has been made, itself or what hands it on."""
    hands_on = _handed_on(graph, variable)

    def waits_for(user: Node) -> list[str]:  # a loop's Merge takes it in the first round
        if user.op not in MERGES:
            return [*user.inputs]
        return [ref for ref in user.inputs if graph[node_name(ref)].op not in NEXT_ITERATION]

    return any(
        user.name != update and user.name in computed_with and update in reachable(graph, waits_for(user))
        for holder in (variable, *hands_on)
        for user in graph.consumers.get(holder, ())
    )


def _handed_on(graph: Graph, variable: str, mixed: Collection[str] = ()) -> set[str]:
    """What hands a variable on; not Merges with something else, as ``mixed`` are."""
    passes = PASSES_OR_ROUTES | REFERENCE_CARRIERS
    found = descendants(graph, [variable], lambda node: node.op in passes and node.name not in mixed)
    sources = {variable, *found}
    merges = [graph[name] for name in found if graph[name].op in MERGES]
    others = {one.name for one in merges if any(node_name(ref) not in sources for ref in one.data_inputs)}
    return _handed_on(graph, variable, {*mixed, *others}) if others else found


def updates_of_constants(graph: Graph) -> dict[str, str]:
    """The assignments to constants, as a graph has that was frozen with its updates, and what each would change."""
    found = {node.name: updated_variable(graph, node) for node in graph if is_update(node)}
    return {name: constant for name, constant in found.items() if constant and graph[constant].op == "Const"}


def without_waits_for(graph: Graph, updates: Mapping[str, str], outputs: Iterable[str]) -> Graph:
    """The graph in which nothing waits for assignments to constants that no output is computed with.

    ::

        mean = Const(float 0.5)
        average = AssignSub(mean, change)
        y = Relu(x, ^average)                      ->   y = Relu(x)

    One whose result an output takes, or that changes what an output reads behind it, is waited for.

    Args:
        updates: of ``updates_of_constants``.
    """
    needed = reachable(graph, list(outputs), data_only=True, missing_ok=True)
    readers = {user.name for constant in updates.values() for user in graph.consumers[constant]}
    needed |= reachable(graph, sorted(readers & needed), missing_ok=True)
    graph, rest = assigning_nothing(graph, updates.keys() - needed)
    return graph.map_nodes(lambda node: node.without_waits(rest))
