"""Encoded records taken apart: Examples, serialized tensors, CSV lines, raw bytes."""
