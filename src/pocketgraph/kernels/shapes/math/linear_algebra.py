"""Shape rules of linear algebra on batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least, broadcast, merge_dim
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("Cholesky", "MatrixInverse", "MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot")
def square_matrix(call: ShapeCall) -> Shape:
    shape = at_least(call.shape(0), 2)
    if shape.dims is None:
        return UNKNOWN
    size = merge_dim(*shape.dims[-2:])
    return Shape((*shape.dims[:-2], size, size))


@shape_rule("MatrixDeterminant")
def determinant(call: ShapeCall) -> Shape:
    shape = square_matrix(call)
    return UNKNOWN if shape.dims is None else Shape(shape.dims[:-2])


shape_rule("LogMatrixDeterminant")(lambda call: [determinant(call)] * 2)


@shape_rule("MatrixSolve", "MatrixTriangularSolve")
def solve(call: ShapeCall) -> Shape:
    matrix, right = at_least(call.shape(0), 2), at_least(call.shape(1), 2)
    if matrix.dims is None or right.dims is None:
        return UNKNOWN
    batch = broadcast(Shape(matrix.dims[:-2]), Shape(right.dims[:-2]))
    return Shape((*(batch.dims or ()), merge_dim(matrix.dims[-1], right.dims[-2]), right.dims[-1]))


@shape_rule("SelfAdjointEigV2")
def eigen(call: ShapeCall) -> Sequence[Shape]:
    shape = square_matrix(call)
    if shape.dims is None:
        return [UNKNOWN, UNKNOWN]
    return [Shape(shape.dims[:-1]), shape if call.attr("compute_v", True) else Shape((0,))]


@shape_rule("Svd")
def svd(call: ShapeCall) -> Sequence[Shape]:
    shape = at_least(call.shape(0), 2)
    if shape.dims is None:
        return [UNKNOWN] * 3
    *batch, rows, columns = shape.dims
    rank = None if rows is None or columns is None else min(rows, columns)
    values = Shape((*batch, rank))
    if not call.attr("compute_uv", True):
        return [values, Shape((0,)), Shape((0,))]
    full = bool(call.attr("full_matrices", False))
    u, v = (rows, columns) if full else (rank, rank)
    return [values, Shape((*batch, rows, u)), Shape((*batch, columns, v))]


@shape_rule("Qr")
def qr(call: ShapeCall) -> Sequence[Shape]:
    shape = at_least(call.shape(0), 2)
    if shape.dims is None:
        return [UNKNOWN] * 2
    *batch, rows, columns = shape.dims
    rank = None if rows is None or columns is None else min(rows, columns)
    inner = rows if call.attr("full_matrices", False) else rank
    return [Shape((*batch, rows, inner)), Shape((*batch, inner, columns))]
