"""Gradients of tensors reshaped, joined, cut and gathered."""
