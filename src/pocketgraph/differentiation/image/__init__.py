"""Gradients of the family image."""
