"""Makes constants of the tensors whose values follow from the types and shapes of the feeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pocketgraph.budgets import timed
from pocketgraph.graph import Graph, Node, opdefs
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.compilation_units import STRUCTURAL, Plan
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.step_calls import is_reference_output
from pocketgraph.runtime.planning.rewriting.idle_waits import takes_variable


def with_known_values(
    graph: Graph, plan: Plan, conditional: Collection[str], inferred: Any, fetched: Collection[Endpoint]
) -> Graph:
    """The graph with constants for the tensors whose values follow from the feeds' shapes, such as a Shape's.

    A node of one output becomes a constant; of one with several, those whose values are known are read from new ones.
    A constant waits for whom its node waited, and for inputs that come after a change of a variable.
    """
    from pocketgraph.graph import const

    changed: dict[str, Node] = {}
    taken: dict[str, set[int]] = {}
    for item in plan.items.values():
        for endpoint in item.data:
            taken.setdefault(endpoint.node, set()).add(endpoint.port)
    outside: dict[str, set[int]] = {}
    for endpoint in fetched:
        outside.setdefault(endpoint.node, set()).add(endpoint.port)
    moved: dict[Endpoint, Node] = {}
    changing = _after_changes(plan)
    for name, item in timed(plan.items.items()):
        if item.node.op in STRUCTURAL or not item.data:
            continue
        if name in conditional or plan.frames[name].depth:  # a constant would not know when it is dead
            continue
        ports = taken.get(name, set())
        behind = (each.node for each in item.data if each not in plan.fed and each.node in changing)
        waits = [f"^{waited}" for waited in dict.fromkeys((*item.control, *behind))]
        if ports | outside.get(name, set()) == {0}:
            value, dtype = inferred.value(f"{name}:0"), inferred.dtype(f"{name}:0")
            if value is not None and dtype is not None:
                changed[name] = const(name, value, dtype.base, inputs=waits)
            continue
        for port in ports:
            value, dtype = inferred.value(f"{name}:{port}"), inferred.dtype(f"{name}:{port}")
            own = f"{name}/known_{port}"
            is_fed = Endpoint(name, port) in plan.fed
            if value is not None and dtype is not None and own not in graph.nodes and not is_fed:
                moved[Endpoint(name, port)] = const(own, value, dtype.base, inputs=waits)
    if not changed and not moved:
        return graph
    nodes = [changed.get(node.name, node) for node in graph]
    if moved:
        readers = {n for n, item in plan.items.items() if any(endpoint in moved for endpoint in item.data)}
        nodes = [_reading(node, moved) if node.name in readers else node for node in nodes]
        nodes += moved.values()
    return graph.replace(nodes)


def _after_changes(plan: Plan) -> set[str]:
    """The nodes that change a variable, or come after one that does."""
    items = plan.items
    found = {name for name, item in items.items() if _changes_variable(plan, item)}
    if not found:
        return found
    behind: dict[str, list[str]] = {}
    for name, item in items.items():
        for source in (*item.control, *(each.node for each in item.data if each not in plan.fed)):
            behind.setdefault(source, []).append(name)
    waiting = list(found)
    while waiting:
        new = set(behind.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def _changes_variable(plan: Plan, item: Item) -> bool:
    op = item.node.op
    definition = opdefs.find(op)
    gives_value = definition is None or (bool(definition.outputs) and not is_reference_output(op, 0))
    return not gives_value and takes_variable(plan, item)


def _reading(node: Node, moved: Mapping[Endpoint, Node]) -> Node:
    """A node that reads these constants instead of what they are equal to."""
    inputs = []
    for text in node.inputs:
        known = moved.get(Endpoint.of(text))
        inputs.append(text if known is None else known.name)
    return node.replace(inputs=inputs)
