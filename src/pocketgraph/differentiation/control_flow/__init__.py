"""Gradients of branches and loops."""
