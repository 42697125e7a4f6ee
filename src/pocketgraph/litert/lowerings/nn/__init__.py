"""Lowerings of layers of neural networks and their gradients."""
