"""Layers of neural networks, with their gradients."""
