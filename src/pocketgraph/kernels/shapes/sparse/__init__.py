"""Shape rules of sparse tensors and sets."""
