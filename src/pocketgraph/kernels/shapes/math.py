"""Shape rules of arithmetic: elements, sums over axes and segments, products, linear algebra, Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import (
    Dim,
    at_least,
    axis_of,
    broadcast,
    dims_of,
    merge,
    merge_dim,
    of_rank,
    replaced,
)
from pocketgraph.kernels.shapes.common_rules import broadcast_both, counted_by, merged, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule
from pocketgraph.kernels.xla_dimensions import dot_equation

shape_rule(
    "Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
    "Bitcast", "Cast", "Ceil", "ClipByValue", "ComplexAbs", "Conj", "Cos", "Cosh", "Digamma", "Erf", "Erfc", "Erfinv",
    "Exp", "Expm1", "Floor", "Imag", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "Lgamma", "Log", "Log1p",
    "LogicalNot", "Ndtri", "Neg", "PopulationCount", "Real", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sign",
    "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "XlaReducePrecision", "_HostCast",
    "_UnaryOpsComposition",
)(unchanged)  # fmt: skip
shape_rule(
    "Add", "AddV2", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Complex", "Div", "DivNoNan",
    "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Igamma", "Igammac", "LeftShift", "Less", "LessEqual",
    "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "NotEqual", "Polygamma",
    "Pow", "RealDiv", "RightShift", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod", "Xdivy", "Xlogy", "Zeta",
)(broadcast_both)  # fmt: skip
shape_rule("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")(merged)


@shape_rule("AddN", "AccumulateNV2")
def add_n(call: ShapeCall) -> Shape:
    result = UNKNOWN
    for shape in call.inputs:
        result = merge(result, shape)
    return result


@shape_rule("Select")
def select(call: ShapeCall) -> Shape:
    """The condition is of the values' shape, or a scalar, or a vector as long as their first dimension."""
    condition, chosen = call.shape(0), merge(call.shape(1), call.shape(2))
    if condition.rank is None or condition.rank in (0, 1) or chosen.rank is None:
        return chosen
    return merge(condition, chosen)


shape_rule("SelectV2")(lambda call: broadcast(call.shape(0), broadcast(call.shape(1), call.shape(2))))


shape_rule("Cumprod", "Cumsum", "CumulativeLogsumexp", "Bucketize", "BucketizeWithInputBoundaries")(unchanged)
shape_rule("L2Loss")(scalar)
shape_rule("Bincount")(counted_by(1))


@shape_rule("DenseBincount")
def counts(call: ShapeCall) -> Shape:
    """Of a vector a vector, of a matrix the counts of each row."""
    rows = call.shape(0)
    return UNKNOWN if rows.dims is None else Shape((*rows.dims[:-1], call.integer(1)))


shape_rule("HistogramFixedWidth")(counted_by(2))


@shape_rule("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm")
def reduction(call: ShapeCall) -> Shape:
    shape, axes = call.shape(0), call.integers(1)
    keep = bool(call.attr("keep_dims", False)) or bool(call.attr("keepdims", False))
    if axes is None:
        if shape.dims is not None and keep:
            return Shape((None,) * len(shape.dims))
        if shape.rank is not None and call.shape(1).elements == 1 and shape.rank and 1 not in call.unread:
            return Shape((None,) * (shape.rank - 1))
        return SCALAR if shape.rank == 0 else UNKNOWN
    dims = dims_of(shape)
    gone = {axis_of(axis, len(dims)) for axis in axes}
    if keep:
        return replaced(dims, dict.fromkeys(gone, 1))
    return Shape(d for i, d in enumerate(dims) if i not in gone)


@shape_rule("ArgMax", "ArgMin")
def arg_extreme(call: ShapeCall) -> Shape:
    dims, axis = call.dims(0), call.integer(1)
    if not dims:
        return SCALAR
    if axis is None:
        return Shape((None,) * (len(dims) - 1))
    at = axis_of(axis, len(dims))
    return Shape(dims[:at] + dims[at + 1 :])


@shape_rule("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax")
def segment(call: ShapeCall) -> Shape:
    data, ids = call.dims(0, 1), call.integers(1)
    count = None if ids is None else (max(ids) + 1 if ids else 0)
    return Shape((count, *data[1:]))


@shape_rule("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax")
def unsorted_segment(call: ShapeCall) -> Shape:
    data, rank = call.dims(0), len(call.dims(1))
    merge(Shape(data[:rank]), call.shape(1))
    return Shape((call.integer(2), *data[rank:]))


shape_rule("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")(
    lambda call: Shape((None, *call.dims(0, 1)[1:]))
)
shape_rule(
    "SparseSegmentSumGrad",
    "SparseSegmentMeanGrad",
    "SparseSegmentSqrtNGrad",
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
)(lambda call: Shape((call.integer(3), *call.dims(0, 1)[1:])))


@shape_rule("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def of_used_segments(call: ShapeCall) -> Sequence[Shape]:
    grad = at_least(call.shape(0), 1)
    return [UNKNOWN if grad.dims is None else Shape((None, *grad.dims[1:])), Shape((None,))]


shape_rule("Cross")(merged)


@shape_rule("MatMul", "SparseMatMul")
def matmul(call: ShapeCall) -> Shape:
    left, right = of_rank(call.shape(0), 2), of_rank(call.shape(1), 2)
    return Shape(multiplied(left, right, bool(call.attr("transpose_a")), bool(call.attr("transpose_b"))))


def multiplied(left: Sequence[Dim], right: Sequence[Dim], flip_left: bool, flip_right: bool) -> tuple[Dim, Dim]:
    """Rows and columns of a matrix product; GraphError when the inner sizes differ."""
    rows, inner = (left[1], left[0]) if flip_left else (left[0], left[1])
    other, columns = (right[1], right[0]) if flip_right else (right[0], right[1])
    merge_dim(inner, other)
    return rows, columns


@shape_rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(call: ShapeCall) -> Shape:
    both = [at_least(call.shape(index), 2) for index in (0, 1)]  # before one of unknown rank ends the rule
    left, right = map(dims_of, both)
    before = Shape(left[:-2]), Shape(right[:-2])
    batch = merge(*before) if call.node.op == "BatchMatMul" else broadcast(*before)
    flips = bool(call.attr("adj_x")), bool(call.attr("adj_y"))
    return Shape((*(batch.dims or ()), *multiplied(left[-2:], right[-2:], *flips)))


@shape_rule("Einsum", "XlaEinsum")
def einsum(call: ShapeCall) -> Shape:
    """An ellipsis stands for the axes that have no letter; over all operands, these are broadcast."""
    return _of_equation(str(call.attr("equation", "")).replace(" ", ""), call.inputs)


@shape_rule("XlaDot")
def xla_dot(call: ShapeCall) -> Shape:
    left, right = (len(dims_of(shape)) for shape in call.inputs)
    try:
        return _of_equation(
            dot_equation(call.attr("dimension_numbers", "").encode("latin-1"), left, right), call.inputs
        )
    except ValueError as error:
        raise GraphError(str(error)) from None


def _of_equation(equation: str, shapes: Sequence[Shape]) -> Shape:
    terms, arrow, wanted = equation.partition("->")
    if not arrow:
        return UNKNOWN
    sizes: dict[str, Dim] = {}
    unnamed = Shape(())
    for term, shape in zip(terms.split(","), shapes, strict=True):
        before, dots, after = term.partition("...")
        if not dots:
            dims = of_rank(shape, len(term))
        elif shape.dims is None:
            return UNKNOWN
        else:
            known = at_least(shape, len(before) + len(after)).dims or ()
            end = len(known) - len(after)
            unnamed = broadcast(unnamed, Shape(known[len(before) : end]))
            dims = (*known[: len(before)], *known[end:])
        for letter, size in zip(before + after, dims, strict=True):
            sizes[letter] = merge_dim(sizes.get(letter), size)
    before, dots, after = wanted.partition("...")
    middle = (unnamed.dims or ()) if dots else ()
    return Shape((*(sizes[letter] for letter in before), *middle, *(sizes[letter] for letter in after)))


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


shape_rule("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")(unchanged)


@shape_rule("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def real_transform(call: ShapeCall) -> Shape:
    """The last axes have the lengths of input 1; from real numbers, half of the last one's and one more come out."""
    axes = int(call.node.op[-2]) if call.node.op.endswith("D") else 1
    of_rank(call.shape(1), 1)
    dims = call.dims(0, axes)
    given = call.integers(1)
    lengths: list[Dim] = [None] * axes if given is None or len(given) != axes else [int(length) for length in given]
    if call.node.op.startswith("R") and lengths[-1] is not None:
        lengths[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
    return Shape((*dims[: len(dims) - axes], *lengths))
