"""Makes constants of the tensors whose values follow from the types and shapes of the feeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pocketgraph.budgets import timed
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.compilation_units import STRUCTURAL, Plan


def with_known_values(
    graph: Graph, plan: Plan, conditional: Collection[str], inferred: Any, fetched: Collection[Endpoint]
) -> Graph:
    """The graph with constants for the tensors whose values follow from the feeds' shapes, such as a Shape's.

    A node of one output becomes a constant; of one with several, those whose values are known are read from new ones.
    """
    changed: dict[str, Node] = {}
    having = [
        (name, item)
        for name, item in timed(plan.items.items())
        if item.data and item.node.op not in STRUCTURAL and inferred.has_value(name)
    ]
    taken: dict[str, set[int]] = {}
    for item in plan.items.values() if having else ():
        for endpoint in item.data:
            taken.setdefault(endpoint.node, set()).add(endpoint.port)
    outside: dict[str, set[int]] = {}
    for endpoint in fetched:
        outside.setdefault(endpoint.node, set()).add(endpoint.port)
    moved: dict[Endpoint, Node] = {}
    for name, item in having:
        if name in conditional or plan.frames[name].depth:  # a constant would not know when it is dead
            continue
        ports = taken.get(name, set())
        if ports | outside.get(name, set()) == {0}:
            value, dtype = inferred.value(f"{name}:0"), inferred.dtype(f"{name}:0")
            if value is not None and dtype is not None:
                changed[name] = const(name, value, dtype.base, inputs=[f"^{waited}" for waited in item.control])
            continue
        for port in ports:
            value, dtype = inferred.value(f"{name}:{port}"), inferred.dtype(f"{name}:{port}")
            own = f"{name}/known_{port}"
            is_fed = Endpoint(name, port) in plan.fed
            if value is not None and dtype is not None and own not in graph.nodes and not is_fed:
                waits = [f"^{waited}" for waited in item.control]
                moved[Endpoint(name, port)] = const(own, value, dtype.base, inputs=waits)
    if not changed and not moved:
        return graph
    nodes = [changed.get(node.name, node) for node in graph]
    if moved:
        readers = {n for n, item in plan.items.items() if any(endpoint in moved for endpoint in item.data)}
        nodes = [_reading(node, moved) if node.name in readers else node for node in nodes]
        nodes += moved.values()
    return graph.replace(nodes)


def _reading(node: Node, moved: Mapping[Endpoint, Node]) -> Node:
    """A node that reads these constants instead of what they are equal to."""
    inputs = []
    for text in node.inputs:
        known = moved.get(Endpoint.of(text))
        inputs.append(text if known is None else known.name)
    return node.replace(inputs=inputs)
