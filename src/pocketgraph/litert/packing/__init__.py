"""Weights in the order in which XNNPACK reads them, written straight from the graph."""
