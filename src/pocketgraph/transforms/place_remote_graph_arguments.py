"""Refuses to prepare a graph for a Hexagon processor."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.transforms._hexagon import refusal
from pocketgraph.transforms.tool import transform


@transform
def place_remote_graph_arguments(graph: Graph, **parameters: str) -> Graph:
    """Would mark the nodes that a Hexagon processor is to run.

    Given:   x = Placeholder(dtype=float)
             ; place_remote_graph_arguments(ignore_errors=true)
    Result:  x = Placeholder(dtype=float)

    Differs from the original: this needs Qualcomm's Hexagon SDK, which only TensorFlow's own builds could use; the rule
    is known with any parameters, so that ignore_errors works, and always fails. quantize_nodes makes eight-bit graphs
    for other processors.

    Raises:
        TransformError: always.
    """
    raise refusal("place_remote_graph_arguments")
