"""Gives one node another name."""

from __future__ import annotations

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, parse_ref
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.tool import transform


@transform
def rename_node(graph: Graph, *, old_node_name: str, new_node_name: str, compat: Compat = Compat.FIXED) -> Graph:
    """Renames a node and every reference to it; a graph without that node stays as it is.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, ^x, T=float)
             ; rename_node(old_node_name=x, new_node_name=image)
    Result:  image = Placeholder(dtype=float)
             y = Relu(image, ^image, T=float)

    Differs from the original: for the rules behind this one, an input or output that is renamed is one under its new
    name (there, they look for the old name).

    Args:
        old_node_name: which node.
        new_node_name: its new name.

    Raises:
        TransformError: a node has the new name already.
    """
    if new_node_name in graph:
        raise TransformError(f"a node is already using {new_node_name} as name")
    if old_node_name not in graph:
        return graph
    if not compat.original:
        graph = graph.replace(
            inputs=[_renamed(ref, old_node_name, new_node_name) for ref in graph.inputs],
            outputs=[_renamed(ref, old_node_name, new_node_name) for ref in graph.outputs],
        )
    named = (node.replace(name=new_node_name) if node.name == old_node_name else node for node in graph)
    return rename_inputs(graph.replace(named), {f"{old_node_name}:*": new_node_name})


def _renamed(ref: str, old: str, new: str) -> str:
    name, port, _ = parse_ref(ref)
    if name != old:
        return ref
    return f"{new}:{port}" if ref != name else new
