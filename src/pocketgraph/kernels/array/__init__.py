"""Tensors made, reshaped, joined, cut, gathered and sorted."""
