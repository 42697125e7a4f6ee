"""Shape rules of matrices' diagonals."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("MatrixBandPart", "BatchMatrixBandPart")(unchanged)


@shape_rule("MatrixDiag", "BatchMatrixDiag")
def matrix_diag(call: ShapeCall) -> Shape:
    shape = at_least(call.shape(0), 1)
    return UNKNOWN if shape.dims is None else Shape((*shape.dims, shape.dims[-1]))


@shape_rule("MatrixDiagV2", "MatrixDiagV3")
def matrices_of_diagonals(call: ShapeCall) -> Shape:
    """A size of -1 is the smallest that the diagonals fit in, square where neither size is said."""
    shape, diagonals = at_least(call.shape(0), 1), call.integers(1)
    rows, columns = call.integer(2), call.integer(3)
    if shape.dims is None or not diagonals or rows is None or columns is None:
        return UNKNOWN
    low, high, width = diagonals[0], diagonals[-1], shape.dims[-1]
    if width is None:
        rows, columns = (None if size == -1 else size for size in (rows, columns))
    else:
        least_rows, least_columns = width - min(high, 0), width + max(low, 0)
        if rows == columns == -1:
            rows = columns = max(least_rows, least_columns)
        rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    return Shape((*shape.dims[: -1 if low == high else -2], rows, columns))


@shape_rule("MatrixDiagPart", "BatchMatrixDiagPart")
def matrix_diag_part(call: ShapeCall) -> Shape:
    shape = at_least(call.shape(0), 2)
    if shape.dims is None:
        return UNKNOWN
    rows, columns = shape.dims[-2:]
    return Shape((*shape.dims[:-2], None if rows is None or columns is None else min(rows, columns)))


@shape_rule("MatrixDiagPartV2", "MatrixDiagPartV3")
def diagonals_of_matrices(call: ShapeCall) -> Shape:
    """The longest of the diagonals wanted; several are rows."""
    shape, diagonals = at_least(call.shape(0), 2), call.integers(1)
    if shape.dims is None or not diagonals:
        return UNKNOWN
    low, high = diagonals[0], diagonals[-1]
    band = () if low == high else (high - low + 1,)
    rows, columns = shape.dims[-2:]
    if rows is None or columns is None:
        return Shape((*shape.dims[:-2], *band, None))
    longest = max(0, min(rows + min(high, 0), columns - max(low, 0)))
    return Shape((*shape.dims[:-2], *band, longest))


@shape_rule("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(call: ShapeCall) -> Shape:
    return at_least(call.shape(0), 2)


@shape_rule("Diag")
def diag(call: ShapeCall) -> Shape:
    shape = call.shape(0)
    return UNKNOWN if shape.dims is None else Shape(shape.dims + shape.dims)


@shape_rule("DiagPart")
def diag_part(call: ShapeCall) -> Shape:
    shape = call.shape(0)
    return UNKNOWN if shape.dims is None else Shape(shape.dims[: len(shape.dims) // 2])
