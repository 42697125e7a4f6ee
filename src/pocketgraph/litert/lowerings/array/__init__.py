"""Lowerings of tensors reshaped, joined, cut, gathered and padded."""
