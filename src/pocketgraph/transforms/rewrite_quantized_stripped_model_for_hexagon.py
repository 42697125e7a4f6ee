"""Refuses to prepare a graph for a Hexagon processor."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.transforms._hexagon import refusal
from pocketgraph.transforms.tool import transform


@transform
def rewrite_quantized_stripped_model_for_hexagon(graph: Graph, **parameters: str) -> Graph:
    """Would replace an eight-bit graph by one call of a Hexagon processor.

    Given:   x = Placeholder(dtype=float)
             ; rewrite_quantized_stripped_model_for_hexagon(ignore_errors=true)
    Result:  x = Placeholder(dtype=float)

    Differs from the original: this needs Qualcomm's Hexagon SDK, which only TensorFlow's own builds could use; the rule
    is known with any parameters, so that ignore_errors works, and always fails. quantize_nodes makes eight-bit graphs
    for other processors.

    Raises:
        TransformError: always.
    """
    raise refusal("rewrite_quantized_stripped_model_for_hexagon")
