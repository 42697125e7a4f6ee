"""Shape rules of simulated quantization."""

from __future__ import annotations

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.algebra import at_least, of_rank
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("FakeQuantWithMinMaxArgs")(unchanged)


@shape_rule("FakeQuantWithMinMaxVars")
def fake_quant(call: ShapeCall) -> Shape:
    of_rank(call.shape(1), 0)
    of_rank(call.shape(2), 0)
    return call.shape(0)


shape_rule("FakeQuantWithMinMaxVarsPerChannel")(lambda call: at_least(call.shape(0), 1))
