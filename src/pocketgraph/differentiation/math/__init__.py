"""Gradients of arithmetic, reductions, products of matrices and linear algebra."""
