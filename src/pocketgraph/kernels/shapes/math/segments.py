"""Shape rules of reductions by group, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least, merge
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax")
def segment(call: ShapeCall) -> Shape:
    data, ids = at_least(call.shape(0), 1), call.integers(1)
    if data.dims is None:
        return UNKNOWN
    count = None if ids is None else (max(ids) + 1 if ids else 0)
    return Shape((count, *data.dims[1:]))


@shape_rule("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax")
def unsorted_segment(call: ShapeCall) -> Shape:
    data, ids, count = call.shape(0), call.shape(1), call.integer(2)
    if data.dims is None or ids.dims is None:
        return UNKNOWN
    merge(Shape(data.dims[: len(ids.dims)]), ids)
    return Shape((count, *data.dims[len(ids.dims) :]))


@shape_rule("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
def sparse_segment(call: ShapeCall) -> Shape:
    data = at_least(call.shape(0), 1)
    return UNKNOWN if data.dims is None else Shape((None, *data.dims[1:]))


@shape_rule("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def of_segments(call: ShapeCall) -> Shape:
    grad = at_least(call.shape(0), 1)
    return UNKNOWN if grad.dims is None else Shape((call.integer(3), *grad.dims[1:]))


@shape_rule("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def of_used_segments(call: ShapeCall) -> Sequence[Shape]:
    grad = at_least(call.shape(0), 1)
    return [UNKNOWN if grad.dims is None else Shape((None, *grad.dims[1:])), Shape((None,))]
