"""Shape rules of tensors made, reshaped, joined, cut, gathered and sorted."""
