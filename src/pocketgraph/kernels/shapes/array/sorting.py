"""Shape rules of order and sameness: the largest k, unique values."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least, axis_of, merge, of_rank, replaced
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
    shape = at_least(call.shape(0), 1)
    k = call.attr("k") if call.node.op == "TopK" else call.integer(1)
    if shape.dims is None:
        return [UNKNOWN, UNKNOWN]
    last = shape.dims[-1]
    if last is not None and k is not None and k > last:
        raise GraphError(f"the {k} largest of {last} were asked for")
    return [replaced(shape.dims, {len(shape.dims) - 1: k})] * 2


@shape_rule("ApproxTopK")
def approx_top_k(call: ShapeCall) -> Sequence[Shape]:
    shape = at_least(call.shape(0), 1)
    if shape.dims is None or not call.attr("aggregate_to_topk", True):
        return [UNKNOWN, UNKNOWN]
    axis = axis_of(call.attr("reduction_dimension", -1), len(shape.dims))
    return [replaced(shape.dims, {axis: call.attr("k")})] * 2


@shape_rule("NthElement")
def nth_element(call: ShapeCall) -> Shape:
    shape = at_least(call.shape(0), 1)
    return UNKNOWN if shape.dims is None else Shape(shape.dims[:-1])


@shape_rule("InTopK", "InTopKV2")
def in_top_k(call: ShapeCall) -> Shape:
    (rows, _), (labels,) = of_rank(call.shape(0), 2), of_rank(call.shape(1), 1)
    return merge(Shape((rows,)), Shape((labels,)))
