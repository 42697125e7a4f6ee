"""Rewritings of a graph for the values that are known of a call; graph_passes.py lists them in their order."""
