"""Gradients of the family math."""
