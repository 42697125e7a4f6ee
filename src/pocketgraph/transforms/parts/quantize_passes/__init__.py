"""The passes of quantize_nodes, one a file; each takes a graph and gives a graph."""
