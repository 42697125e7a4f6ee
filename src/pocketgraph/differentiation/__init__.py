"""Differentiation: gradients of graphs as graphs, and training graphs."""

from pocketgraph.differentiation.differentiate import gradients
from pocketgraph.differentiation.losses import add_loss
from pocketgraph.differentiation.minimize import minimize
from pocketgraph.differentiation.trainable import trainable

__all__ = ["add_loss", "gradients", "minimize", "trainable"]
