"""Gradients of variables and arrays of tensors."""
