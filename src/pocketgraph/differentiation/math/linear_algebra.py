"""Gradients of inverses and determinants of matrices."""

from __future__ import annotations

from pocketgraph.differentiation.backward import Backward
from pocketgraph.differentiation.registry import gradient
from pocketgraph.errors import GraphError


@gradient("MatrixInverse")
def inverse(op: Backward) -> str:
    """Of A⁻¹ with the gradient G: -A⁻ᵀ G A⁻ᵀ."""
    if op.attr("adjoint"):
        raise GraphError("the inverse of an adjoint has no gradient here")
    inner = op.add("BatchMatMul", op.grad, op.output(), adj_y=True)
    return op.add("Neg", op.add("BatchMatMul", op.output(), inner, adj_x=True))


@gradient("MatrixDeterminant")
def determinant(op: Backward) -> str:
    """Of |A|: |A| A⁻ᵀ."""
    scale = op.mul(op.grad, op.output())
    for _ in range(2):
        scale = op.add("ExpandDims", scale, op.const(-1))
    return op.mul(scale, op.add("MatrixInverse", op.inputs[0], adjoint=True))
