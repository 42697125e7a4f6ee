"""Shape rules of layers of neural networks and their gradients."""
