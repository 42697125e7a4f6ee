"""Lowerings of arithmetic, reductions and products of matrices."""
