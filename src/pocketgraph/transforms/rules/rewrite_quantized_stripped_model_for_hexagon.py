"""Refuses to prepare a graph for a Hexagon processor."""

from pocketgraph.transforms.parts.hexagon import refusing

rewrite_quantized_stripped_model_for_hexagon = refusing(
    "rewrite_quantized_stripped_model_for_hexagon",
    "Would replace an eight-bit graph by one call of a Hexagon processor.",
)
