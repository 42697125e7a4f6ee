"""Forgets on which device each node was meant to run."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.tool import transform


@transform
def remove_device(graph: Graph) -> Graph:
    """Clears the device of every node, so that the graph runs where there is no such device.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, T=float) @"/gpu:0"
    Result:  x = Placeholder(dtype=float)
             y = Relu(x, T=float)
    """

    def change(node: Node) -> Node:
        return node.replace(device="") if node.device else node

    return graph.map_nodes(change)
