"""Drops the inputs that only order execution."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.tool import transform


@transform
def remove_control_dependencies(graph: Graph) -> Graph:
    """Removes every control input; data inputs stay as they are.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, ^x, T=float)
    Result:  x = Placeholder(dtype=float)
             y = Relu(x, T=float)
    """

    def change(node: Node) -> Node:
        return node.replace(inputs=node.data_inputs) if node.control_inputs else node

    return graph.map_nodes(change)
