"""Drops the inputs that only order execution."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.branch_gates import holding_inputs
from pocketgraph.transforms.tool import transform


@transform
def remove_control_dependencies(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Removes control inputs; data inputs stay as they are.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, ^x, T=float)
    Result:  x = Placeholder(dtype=float)
             y = Relu(x, T=float)

    Differs from the original: control inputs that hold a node in a branch or loop stay, as those of its constants
    (there, a Merge gets the values of both branches, and TensorFlow refuses loops whose nodes have inputs from
    different frames).
    """
    holding = {} if compat.original else holding_inputs(graph)

    def change(node: Node) -> Node:
        kept = holding.get(node.name, ())
        return node if len(kept) == len(node.control_inputs) else node.replace(inputs=(*node.data_inputs, *kept))

    return graph.map_nodes(change)
