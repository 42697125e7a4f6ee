"""Gradients of the family array."""
