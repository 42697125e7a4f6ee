"""Shape rules of order and sameness: the largest k, unique values."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import axis_of, merge, of_rank, replaced
from pocketgraph.kernels.shapes.common_rules import VECTOR, fixed, of_input, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("ListDiff")(fixed(VECTOR, VECTOR))
shape_rule("XlaSort")(unchanged)
shape_rule("UpperBound", "LowerBound")(of_input(1))


@shape_rule("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(call: ShapeCall) -> Sequence[Shape]:
    shapes = [Shape((None,)), call.shape(0)]
    if call.node.op.endswith("V2"):
        shapes = [UNKNOWN, UNKNOWN]
    return [*shapes, Shape((None,))]


@shape_rule("TopK", "TopKV2")
def top_k(call: ShapeCall) -> Sequence[Shape]:
    *before, last = call.dims(0, 1)
    k = call.attr("k") if call.node.op == "TopK" else call.integer(1)
    if last is not None and k is not None and k > last:
        raise GraphError(f"the {k} largest of {last} were asked for")
    return [Shape((*before, k))] * 2


@shape_rule("ApproxTopK")
def approx_top_k(call: ShapeCall) -> Sequence[Shape]:
    dims = call.dims(0, 1)
    if not call.attr("aggregate_to_topk", True):
        return [UNKNOWN, UNKNOWN]
    axis = axis_of(call.attr("reduction_dimension", -1), len(dims))
    return [replaced(dims, {axis: call.attr("k")})] * 2


shape_rule("NthElement")(lambda call: Shape(call.dims(0, 1)[:-1]))


@shape_rule("InTopK", "InTopKV2")
def in_top_k(call: ShapeCall) -> Shape:
    (rows, _), (labels,) = of_rank(call.shape(0), 2), of_rank(call.shape(1), 1)
    return merge(Shape((rows,)), Shape((labels,)))
