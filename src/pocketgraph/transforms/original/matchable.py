"""Which nodes the original's search for patterns sees: none in a cycle that is no loop, and none behind one."""

from __future__ import annotations

from collections.abc import Callable

from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.order import is_topological, topological
from pocketgraph.transforms.compat import Compat


def matchable(graph: Graph, compat: Compat) -> Callable[[Node], bool]:
    """Whether a rule that rewrites node by node may rewrite a node.

    With ``Compat.ORIGINAL`` nodes that have no place in a topological order may not be, and none may where an input
    leads nowhere; otherwise all may.
    """
    if not compat.original or is_topological(graph):
        return _every_node
    try:
        order = topological(graph, partial=True)
    except GraphError:
        return lambda node: False
    if len(order) == len(graph):
        return _every_node
    seen = {node.name for node in order}
    return lambda node: node.name in seen


def _every_node(node: Node) -> bool:
    return True
