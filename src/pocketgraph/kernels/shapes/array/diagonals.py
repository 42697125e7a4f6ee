"""Shape rules of matrices' diagonals."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("MatrixBandPart", "BatchMatrixBandPart")(unchanged)


shape_rule("MatrixDiag", "BatchMatrixDiag")(lambda call: Shape((*call.dims(0, 1), call.dims(0)[-1])))


@shape_rule("MatrixDiagV2", "MatrixDiagV3")
def matrices_of_diagonals(call: ShapeCall) -> Shape:
    """A size of -1 is the smallest that the diagonals fit in, square where neither size is said."""
    dims, diagonals = call.dims(0, 1), call.integers(1)
    rows, columns = call.integer(2), call.integer(3)
    if not diagonals or rows is None or columns is None:
        return UNKNOWN
    low, high, width = diagonals[0], diagonals[-1], dims[-1]
    if width is None:
        rows, columns = (None if size == -1 else size for size in (rows, columns))
    else:
        least_rows, least_columns = width - min(high, 0), width + max(low, 0)
        if rows == columns == -1:
            rows = columns = max(least_rows, least_columns)
        rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    return Shape((*dims[: -1 if low == high else -2], rows, columns))


@shape_rule("MatrixDiagPart", "BatchMatrixDiagPart")
def matrix_diag_part(call: ShapeCall) -> Shape:
    *batch, rows, columns = call.dims(0, 2)
    return Shape((*batch, None if rows is None or columns is None else min(rows, columns)))


@shape_rule("MatrixDiagPartV2", "MatrixDiagPartV3")
def diagonals_of_matrices(call: ShapeCall) -> Shape:
    """The longest of the diagonals wanted; several are rows."""
    (*batch, rows, columns), diagonals = call.dims(0, 2), call.integers(1)
    if not diagonals:
        return UNKNOWN
    low, high = diagonals[0], diagonals[-1]
    band = () if low == high else (high - low + 1,)
    if rows is None or columns is None:
        return Shape((*batch, *band, None))
    return Shape((*batch, *band, max(0, min(rows + min(high, 0), columns - max(low, 0)))))


shape_rule("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")(
    lambda call: at_least(call.shape(0), 2)
)
shape_rule("Diag")(lambda call: Shape(call.dims(0) * 2))
shape_rule("DiagPart")(lambda call: Shape(call.dims(0)[: len(call.dims(0)) // 2]))
