"""Shape rules of connectionist temporal classification: its loss, what decodes it, beam search."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import of_rank
from pocketgraph.kernels.shapes.common_rules import VECTOR, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

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
