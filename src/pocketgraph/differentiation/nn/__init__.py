"""Gradients of the family nn."""
