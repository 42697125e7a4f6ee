"""Shape rules of non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import of_rank
from pocketgraph.kernels.shapes.common_rules import VECTOR, fixed
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps")(
    fixed(VECTOR)
)


@shape_rule("NonMaxSuppressionV4")
def non_max_suppression_padded(call: ShapeCall) -> Sequence[Shape]:
    padded = call.attr("pad_to_max_output_size", False)
    return [Shape((call.integer(2) if padded else None,)), SCALAR]


@shape_rule("NonMaxSuppressionV5")
def non_max_suppression_soft(call: ShapeCall) -> Sequence[Shape]:
    size = Shape((call.integer(2) if call.attr("pad_to_max_output_size", False) else None,))
    return [size, size, SCALAR]


@shape_rule("CombinedNonMaxSuppression")
def combined_non_max_suppression(call: ShapeCall) -> Sequence[Shape]:
    batch, each = of_rank(call.shape(0), 4)[0], call.integer(2)
    classes, limit = of_rank(call.shape(1), 3)[2], call.integer(3)
    count = limit
    if call.attr("pad_per_class", False):
        count = None if None in (each, classes, limit) else min(limit or 0, (each or 0) * (classes or 0))
    return [Shape((batch, count, 4)), Shape((batch, count)), Shape((batch, count)), Shape((batch,))]
