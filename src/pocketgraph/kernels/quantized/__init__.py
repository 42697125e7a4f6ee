"""Quantized tensors: the arithmetic of codes, and the layers computed on them."""
