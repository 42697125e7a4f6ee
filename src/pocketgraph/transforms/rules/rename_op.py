"""Exchanges one op type for another."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.tool import transform


@transform
def rename_op(graph: Graph, *, old_op_name: str, new_op_name: str) -> Graph:
    """Gives every node of one op another op; inputs and attributes stay.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, T=float)
             ; rename_op(old_op_name=Relu, new_op_name=Relu6)
    Result:  x = Placeholder(dtype=float)
             y = Relu6(x, T=float)

    Args:
        old_op_name: which nodes.
        new_op_name: their new op.
    """

    def change(node: Node) -> Node:
        return node.replace(op=new_op_name) if node.op == old_op_name else node

    return graph.map_nodes(change)
