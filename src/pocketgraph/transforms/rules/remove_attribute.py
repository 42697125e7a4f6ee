"""Drops one attribute from the nodes of an op, or from all."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.tool import transform


@transform
def remove_attribute(graph: Graph, *, attribute_name: str, op_name: str = "*") -> Graph:
    """Removes an attribute from every node that has it.

    Given:   x = Placeholder(dtype=float, _output_shapes=[[1]])
             ; remove_attribute(attribute_name=_output_shapes)
    Result:  x = Placeholder(dtype=float)

    Args:
        attribute_name: which attribute.
        op_name: only from nodes of this op; by default from all.
    """

    def change(node: Node) -> Node:
        if op_name not in ("*", node.op) or attribute_name not in node.attrs:
            return node
        return node.with_attrs(**{attribute_name: None})

    return graph.map_nodes(change)
