"""Arithmetic, reductions, products of matrices, linear algebra, special functions."""
