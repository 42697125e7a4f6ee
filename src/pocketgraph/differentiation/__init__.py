"""Differentiation: gradients of graphs as graphs, and training graphs."""

from pocketgraph.differentiation.gradients import gradients
from pocketgraph.differentiation.loss_functions import add_loss
from pocketgraph.differentiation.minimize import minimize
from pocketgraph.differentiation.regularization import add_regularization
from pocketgraph.differentiation.schedules import add_schedule
from pocketgraph.differentiation.trainable import trainable
from pocketgraph.differentiation.training_signatures import add_signatures

__all__ = [
    "add_loss", "add_regularization", "add_schedule", "add_signatures", "gradients", "minimize", "trainable",
]  # fmt: skip
