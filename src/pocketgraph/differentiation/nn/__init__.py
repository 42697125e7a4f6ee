"""Gradients of layers of neural networks."""
