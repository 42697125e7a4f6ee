"""Shape rules of losses."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import merge, merge_dim, of_rank
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("SoftmaxCrossEntropyWithLogits")
def softmax_loss(call: ShapeCall) -> Sequence[Shape]:
    both = merge(call.shape(0), call.shape(1))
    return [Shape((of_rank(both, 2)[0],)), both]


@shape_rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_loss(call: ShapeCall) -> Sequence[Shape]:
    logits = of_rank(call.shape(0), 2)
    rows = merge_dim(logits[0], of_rank(call.shape(1), 1)[0])
    return [Shape((rows,)), Shape((rows, logits[1]))]
