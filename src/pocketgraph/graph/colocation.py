"""Which nodes a node asks to be placed with: ``_class = ["loc:@NAME"]``, which TensorFlow loads only where NAME is."""

from __future__ import annotations

from collections.abc import Set

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node

CLASS = "_class"
COLOCATED = b"loc:@"


def colocated_with(node: Node) -> list[str]:
    """The names of the nodes that this one asks to be placed with."""
    classes = node.attrs.get(CLASS)
    if not isinstance(classes, tuple):
        return []
    return [
        c.removeprefix(COLOCATED).decode("utf-8", "replace")
        for c in classes
        if isinstance(c, bytes) and c.startswith(COLOCATED)
    ]


def without_colocations(graph: Graph, gone: Set[str]) -> Graph:
    """The graph in which no node asks to be placed with one of ``gone``; the same one where none did."""
    if not gone:
        return graph
    nodes = [node if gone.isdisjoint(colocated_with(node)) else _placed_elsewhere(node, gone) for node in graph]
    return graph if all(map(lambda a, b: a is b, nodes, graph)) else graph.replace(nodes)


def _placed_elsewhere(node: Node, gone: Set[str]) -> Node:
    classes, names = node.attrs[CLASS], {COLOCATED + name.encode() for name in gone}
    assert isinstance(classes, tuple)
    kept = tuple(entry for entry in classes if entry not in names)
    attrs = {key: value for key, value in node.attrs.items() if key != CLASS}
    return node.replace(attrs={**attrs, CLASS: kept} if kept else attrs)
