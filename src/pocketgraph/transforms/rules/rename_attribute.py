"""Gives an attribute another name."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.tool import transform


@transform
def rename_attribute(graph: Graph, *, old_attribute_name: str, new_attribute_name: str, op_name: str = "*") -> Graph:
    """Renames an attribute of every node that has it.

    Given:   x = Placeholder(dtype=float)
             ; rename_attribute(old_attribute_name=dtype, new_attribute_name=type)
    Result:  x = Placeholder(type=float)

    A node that has an attribute of the new name already keeps that one's value and loses the old one.

    Args:
        old_attribute_name: which attribute.
        new_attribute_name: its new name.
        op_name: only on nodes of this op; by default on all.
    """

    def change(node: Node) -> Node:
        if op_name not in ("*", node.op) or old_attribute_name not in node.attrs:
            return node
        attrs = {key: value for key, value in node.attrs.items() if key != old_attribute_name}
        attrs.setdefault(new_attribute_name, node.attrs[old_attribute_name])
        return node.replace(attrs=attrs)

    return graph.map_nodes(change)
