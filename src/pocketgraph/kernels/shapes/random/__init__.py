"""Shape rules of random tensors."""
