"""Shape rules of recurrent cells."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import of_rank
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("BlockLSTM", "BlockLSTMV2")
def block_lstm(call: ShapeCall) -> Sequence[Shape]:
    steps, batch, _ = of_rank(call.shape(1), 3)
    return [Shape((steps, batch, of_rank(call.shape(2), 2)[1]))] * 7


@shape_rule("LSTMBlockCell", "GRUBlockCell")
def cell(call: ShapeCall) -> Sequence[Shape]:
    batch = of_rank(call.shape(0), 2)[0]
    outputs = 7 if call.node.op == "LSTMBlockCell" else 4
    return [Shape((batch, of_rank(call.shape(1), 2)[1]))] * outputs
