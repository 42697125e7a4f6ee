"""Shape rules of losses, of what decodes scores over time, and of isotonic regression."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import merge, merge_dim, of_rank
from pocketgraph.kernels.shapes.common_rules import VECTOR, of_input, unchanged
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


shape_rule("GatherTree", "Addons>GatherTree")(unchanged)


@shape_rule("CTCGreedyDecoder")
def ctc_greedy(call: ShapeCall) -> Sequence[Shape]:
    return [Shape((None, 2)), Shape((None,)), Shape((2,)), Shape((of_rank(call.shape(0), 3)[1], 1))]


@shape_rule("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(call: ShapeCall) -> Sequence[Shape]:
    count = call.count("top_paths")
    inputs = call.shape(0)
    batch = inputs[1] if inputs.rank == 3 else None
    return [Shape((None, 2))] * count + [VECTOR] * count + [Shape((2,))] * count + [Shape((batch, count))]


@shape_rule("CTCLoss")
def ctc_loss(call: ShapeCall) -> Sequence[Shape]:
    scores = of_rank(call.shape(0), 3)
    return [Shape((scores[1],)), Shape(scores)]


shape_rule("IsotonicRegression")(of_input(0, times=2))
