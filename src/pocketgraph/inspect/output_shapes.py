"""Shapes written into the graph, where TensorBoard and Netron look for them."""

from __future__ import annotations

from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph

SHAPES = "_output_shapes"
"""TensorFlow's attribute with a shape for each output of a node."""


def with_shapes(graph: Graph) -> Graph:
    """The graph with the inferred shape of every output in an attribute of its node, where it has none."""
    from pocketgraph.kernels.shapes import infer

    try:
        inferred = infer(graph)
    except GraphError:
        return graph
    return graph.map_nodes(
        lambda node: (
            node.with_attrs(**{SHAPES: shapes})
            if (shapes := inferred.shapes(node.name)) and SHAPES not in node.attrs
            else node
        )
    )
