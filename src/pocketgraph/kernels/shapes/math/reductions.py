"""Shape rules of reductions over axes, running sums and histograms."""

from __future__ import annotations

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import axis_of, dims_of, replaced
from pocketgraph.kernels.shapes.common_rules import counted_by, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("Cumprod", "Cumsum", "CumulativeLogsumexp", "Bucketize", "BucketizeWithInputBoundaries")(unchanged)
shape_rule("L2Loss")(scalar)
shape_rule("Bincount")(counted_by(1))
shape_rule("HistogramFixedWidth")(counted_by(2))


@shape_rule("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm")
def reduction(call: ShapeCall) -> Shape:
    shape, axes = call.shape(0), call.integers(1)
    keep = bool(call.attr("keep_dims", False)) or bool(call.attr("keepdims", False))
    if axes is None:
        if shape.dims is not None and keep:
            return Shape((None,) * len(shape.dims))
        if shape.rank is not None and call.shape(1).elements == 1 and shape.rank:
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
