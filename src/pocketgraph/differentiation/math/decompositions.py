"""Gradients of decompositions of matrices.

Sources: M. Giles, An extended collection of matrix derivative results (2008); J. Townsend, Differentiating the singular
value decomposition (2016); D. Roberts and L. Roberts, QR and LQ decomposition matrix backpropagation algorithms (2020);
as TensorFlow's linalg_grad.py applies them. Where values are equal, the vectors are free, and so is what comes of them.
"""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.math.matrix_equations import sides, transposed
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError

TINY = 1e-20
"""What keeps the reciprocal of a difference of 0 from being infinite."""


@gradient("SelfAdjointEigV2")
def eigenvalues(op: NodeGradient) -> str:
    """Of the lower triangle, which alone is read."""
    values, vectors = op.output(), op.output(1)
    middle = op.add("MatrixDiag", op.grad)
    if not op.attr("compute_v"):
        vectors = f"{op.add('SelfAdjointEigV2', op.inputs[0], compute_v=True)}:1"
    elif op.grads[1] is not None:
        turned = op.add("BatchMatMul", vectors, op.grads[1], adj_x=True)
        middle = op.add("Add", middle, op.mul(_reciprocal_differences(op, values), turned))
    whole = op.add("BatchMatMul", vectors, op.add("BatchMatMul", middle, vectors, adj_y=True))
    both = op.add("MatrixBandPart", op.add("Add", whole, transposed(op, whole)), op.const(-1), op.const(0))
    return op.add("MatrixSetDiag", both, op.add("MatrixDiagPart", whole))


@gradient("Svd")
def singular_values(op: NodeGradient) -> str:
    """Where nobody uses the vectors, U diag(g) Vᵀ; of full matrices only if they are square."""
    vectors = [op.output(1), op.output(2)]
    if not op.attr("compute_uv"):
        found = op.add("Svd", op.inputs[0], compute_uv=True, full_matrices=False)
        vectors = [f"{found}:1", f"{found}:2"]
    elif op.grads[1] is not None or op.grads[2] is not None:
        return _by_singular_vectors(op)
    elif op.attr("full_matrices"):
        _sides(op)
    left, right = vectors
    return op.add("BatchMatMul", left, op.add("BatchMatMul", op.add("MatrixDiag", op.grad), right, adj_y=True))


def _by_singular_vectors(op: NodeGradient) -> str:
    rows, columns = _sides(op)
    values, left, right = op.output(), op.output(1), op.output(2)
    by_left, by_right = op.grad_of(1), op.grad_of(2)
    if rows > columns:  # of the transposed matrix, and transposed at the end
        left, right, by_left, by_right = right, left, by_right, by_left
    squares = _reciprocal_differences(op, op.add("Square", values))
    turned = [
        op.mul(squares, op.add("BatchMatMul", vectors, by, adj_x=True))
        for vectors, by in ((left, by_left), (right, by_right))
    ]
    diagonal = op.add("MatrixDiag", values)
    by_u, by_v = (op.add("Add", part, transposed(op, part)) for part in turned)
    middle = op.add(
        "AddN",
        [op.add("MatrixDiag", op.grad), op.add("BatchMatMul", by_u, diagonal), op.add("BatchMatMul", diagonal, by_v)],
    )
    found = op.add("BatchMatMul", left, op.add("BatchMatMul", middle, right, adj_y=True))
    if rows != columns:
        inside = op.add(
            "BatchMatMul", op.add("BatchMatMul", right, by_right, adj_x=True), right, adj_x=True, adj_y=True
        )
        outside = op.add("Sub", transposed(op, by_right), inside)
        scaled = op.add("BatchMatMul", left, op.add("MatrixDiag", _reciprocal(op, values)))
        found = op.add("Add", found, op.add("BatchMatMul", scaled, outside))
    return transposed(op, found) if rows > columns else found


def _sides(op: NodeGradient) -> tuple[int, int]:
    """The numbers of rows and columns of a matrix that is decomposed.

    Raises:
        GraphError: they are not known, or the vectors are of a square where the matrix is none.
    """
    rows, columns = sides(op)
    if op.attr("full_matrices") and rows != columns and (op.node.op == "Svd" or rows > columns):
        raise GraphError("of full matrices it has no gradient here")
    return rows, columns


@gradient("Qr")
def orthogonal_triangular(op: NodeGradient) -> str:
    """Of a matrix with more columns than rows the square part is differentiated, and the rest is Q times its part."""
    rows, columns = _sides(op)
    q, r, by_q, by_r = op.output(), op.output(1), op.grad_of(0), op.grad_of(1)
    if rows >= columns:
        return _of_deep_matrix(op, q, r, by_q, by_r)
    square, rest = (_columns(op, by_r, 0, rows), _columns(op, by_r, rows, columns))
    beyond = _columns(op, op.inputs[0], rows, columns)
    more = op.add("Add", by_q, op.add("BatchMatMul", beyond, rest, adj_y=True))
    parts = [_of_deep_matrix(op, q, _columns(op, r, 0, rows), more, square), op.add("BatchMatMul", q, rest)]
    return op.add("ConcatV2", parts, op.const(-1))


def _of_deep_matrix(op: NodeGradient, q: str, r: str, by_q: str, by_r: str) -> str:
    turned = op.add("BatchMatMul", q, by_q, adj_x=True)
    scaled = op.add("BatchMatMul", r, by_r, adj_y=True)
    skew = op.add("Add", *(op.add("Sub", ref, transposed(op, ref)) for ref in (turned, scaled)))
    below = op.add("MatrixBandPart", skew, op.const(-1), op.const(0))
    outside = op.add("Sub", by_q, op.add("BatchMatMul", q, turned))
    inner = op.add("BatchMatMul", q, op.add("Add", by_r, _over_triangle(op, below, r)))
    return op.add("Add", inner, _over_triangle(op, outside, r))


def _over_triangle(op: NodeGradient, ref: str, upper: str) -> str:
    """The matrix times the inverse of the transposed triangle."""
    solved = op.add("MatrixTriangularSolve", upper, transposed(op, ref), lower=False, adjoint=False)
    return transposed(op, solved)


def _columns(op: NodeGradient, ref: str, first: int, last: int) -> str:
    """Some columns of matrices, whatever their batch."""
    ends = op.const([0, first]), op.const([0, last]), op.const([1, 1])
    return op.add("StridedSlice", ref, *ends, ellipsis_mask=1)


def _reciprocal(op: NodeGradient, ref: str) -> str:
    """``1 / x``, and 0 for 0."""
    return op.add("RealDiv", ref, op.add("Add", op.add("Square", ref), op.number(TINY)))


def _reciprocal_differences(op: NodeGradient, values: str) -> str:
    """``1 / (x_j - x_i)`` in row i and column j, 0 on the diagonal."""
    differences = op.add("Sub", *(op.add("ExpandDims", values, op.const(axis)) for axis in (-2, -1)))
    return op.add("MatrixSetDiag", _reciprocal(op, differences), op.zeros(values))
