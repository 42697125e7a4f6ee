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
    return graph.map_nodes(lambda node: _placed_elsewhere(node, gone)) if gone else graph


def _placed_elsewhere(node: Node, gone: Set[str]) -> Node:
    """The node without what it asks of nodes that are ``gone``; the same one where it asks nothing of them."""
    classes, names = node.attrs.get(CLASS), gone & set(colocated_with(node))
    if not names or not isinstance(classes, tuple):
        return node
    unknown = {COLOCATED + name.encode() for name in names}
    kept = tuple(entry for entry in classes if entry not in unknown)
    attrs = {key: value for key, value in node.attrs.items() if key != CLASS}
    return node.replace(attrs={**attrs, CLASS: kept} if kept else attrs)
