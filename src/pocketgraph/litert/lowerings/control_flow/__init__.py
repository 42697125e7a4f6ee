"""Lowerings of ops that do nothing."""
