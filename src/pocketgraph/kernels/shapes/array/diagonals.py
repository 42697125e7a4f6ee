"""Shape rules of matrices' diagonals."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("MatrixBandPart")(unchanged)


@shape_rule("MatrixDiag", "MatrixDiagV2")
def matrix_diag(call: ShapeCall) -> Shape:
    shape = at_least(call.shape(0), 1)
    if call.node.op != "MatrixDiag":
        return UNKNOWN
    return UNKNOWN if shape.dims is None else Shape((*shape.dims, shape.dims[-1]))


@shape_rule("MatrixDiagPart")
def matrix_diag_part(call: ShapeCall) -> Shape:
    shape = at_least(call.shape(0), 2)
    if shape.dims is None:
        return UNKNOWN
    rows, columns = shape.dims[-2:]
    return Shape((*shape.dims[:-2], None if rows is None or columns is None else min(rows, columns)))


@shape_rule("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
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
