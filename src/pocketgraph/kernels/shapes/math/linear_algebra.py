"""Shape rules of linear algebra on batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import at_least, broadcast, dims_of, merge_dim
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("Cholesky", "MatrixInverse", "MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot")
def square_matrix(call: ShapeCall) -> Shape:
    *batch, rows, columns = call.dims(0, 2)
    size = merge_dim(rows, columns)
    return Shape((*batch, size, size))


shape_rule("MatrixDeterminant")(lambda call: Shape(dims_of(square_matrix(call))[:-2]))
shape_rule("LogMatrixDeterminant")(lambda call: [Shape(dims_of(square_matrix(call))[:-2])] * 2)


@shape_rule("MatrixSolve", "MatrixTriangularSolve")
def solve(call: ShapeCall) -> Shape:
    both = [at_least(call.shape(index), 2) for index in (0, 1)]  # before one of unknown rank ends the rule
    matrix, right = map(dims_of, both)
    batch = broadcast(Shape(matrix[:-2]), Shape(right[:-2]))
    return Shape((*dims_of(batch), merge_dim(matrix[-1], right[-2]), right[-1]))


@shape_rule("SelfAdjointEigV2")
def eigen(call: ShapeCall) -> Sequence[Shape]:
    shape = square_matrix(call)
    return [Shape(dims_of(shape)[:-1]), shape if call.attr("compute_v", True) else Shape((0,))]


@shape_rule("Svd")
def svd(call: ShapeCall) -> Sequence[Shape]:
    *batch, rows, columns = call.dims(0, 2)
    rank = None if rows is None or columns is None else min(rows, columns)
    values = Shape((*batch, rank))
    if not call.attr("compute_uv", True):
        return [values, Shape((0,)), Shape((0,))]
    full = bool(call.attr("full_matrices", False))
    u, v = (rows, columns) if full else (rank, rank)
    return [values, Shape((*batch, rows, u)), Shape((*batch, columns, v))]


@shape_rule("Qr")
def qr(call: ShapeCall) -> Sequence[Shape]:
    *batch, rows, columns = call.dims(0, 2)
    rank = None if rows is None or columns is None else min(rows, columns)
    inner = rows if call.attr("full_matrices", False) else rank
    return [Shape((*batch, rows, inner)), Shape((*batch, inner, columns))]
