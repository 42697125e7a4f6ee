"""Gradients of the family control flow."""
