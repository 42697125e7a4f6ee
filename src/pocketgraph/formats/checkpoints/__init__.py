"""Checkpoints of both versions: tables of tensors by variable name."""
