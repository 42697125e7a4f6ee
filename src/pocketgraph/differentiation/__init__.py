"""Differentiation: gradients of graphs as graphs."""

from pocketgraph.differentiation.differentiate import gradients

__all__ = ["gradients"]
