"""Refuses to prepare a graph for a Hexagon processor."""

from pocketgraph.transforms.parts.hexagon import refusing

place_remote_graph_arguments = refusing(
    "place_remote_graph_arguments", "Would mark the nodes that a Hexagon processor is to run."
)
