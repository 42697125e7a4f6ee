"""Shape rules of reductions by group, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least, merge
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


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
shape_rule("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")(
    lambda call: Shape((call.integer(3), *call.dims(0, 1)[1:]))
)


@shape_rule("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def of_used_segments(call: ShapeCall) -> Sequence[Shape]:
    grad = at_least(call.shape(0), 1)
    return [UNKNOWN if grad.dims is None else Shape((None, *grad.dims[1:])), Shape((None,))]
