"""Lowerings of resizing."""
