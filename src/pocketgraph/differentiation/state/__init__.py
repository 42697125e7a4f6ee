"""Gradients of the family state."""
