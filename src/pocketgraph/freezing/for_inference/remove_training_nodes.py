"""remove_training_nodes: CheckNumerics and Identity are of no use once training is over."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pocketgraph.graph import Graph, Versions
from pocketgraph.graph.colocation import colocated_with
from pocketgraph.graph.edit import rename_inputs

Version = Literal["1.15", "2.x"]


def remove_training_nodes(graph: Graph, protected_nodes: Collection[str] = (), *, like: Version = "2.x") -> Graph:
    """Takes out CheckNumerics and plain Identity nodes; what used them takes their inputs.

    ::

        r = Identity(w)      ->   y = MatMul(x, w)
        y = MatMul(x, r)

    An Identity stays that is protected, has a control input, is waited for by one, or (like 2.x) is named in a
    ``_class``; like 2.x StopGradient goes too. Functions and versions are dropped, as in the original.

    Differs from the original: what takes a CheckNumerics' output takes its input instead of losing it, and an input
    written ``name:0`` is understood.

    Args:
        protected_nodes: names of nodes that stay.
        like: whose rules, those of TensorFlow 1.15 or 2.x.
    """
    splices = frozenset({"Identity"}) if like == "1.15" else frozenset({"Identity", "StopGradient"})
    checks = {n.name: n for n in graph if n.op == "CheckNumerics" and n.name not in protected_nodes}
    nodes = [node.without_waits(checks) for node in graph]
    awaited = {ref[1:] for node in nodes for ref in node.control_inputs if node.name not in checks}
    if like == "2.x":
        awaited.update(target for node in nodes for target in colocated_with(node))
    passed = {name: node.data_inputs[0] for name, node in checks.items() if node.data_inputs}
    for node in nodes:
        plain = node.op in splices and node.data_inputs and not node.control_inputs
        if plain and node.name not in protected_nodes and node.name not in awaited:
            passed[node.name] = node.data_inputs[0]
    kept = [node for node in nodes if node.name not in passed]
    kept_graph = graph.replace(kept, functions={}, versions=Versions(), signatures={}, extra=b"")
    return rename_inputs(kept_graph, passed)
