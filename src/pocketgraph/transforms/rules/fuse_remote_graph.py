"""Refuses to prepare a graph for a Hexagon processor."""

from pocketgraph.transforms.parts.hexagon import refusing

fuse_remote_graph = refusing("fuse_remote_graph", "Would replace parts of the graph by calls of a Hexagon processor.")
