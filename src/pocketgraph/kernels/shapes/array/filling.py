"""Shape rules of tensors made from a few numbers."""

from __future__ import annotations

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.common_rules import counted_by, held_by, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("OnesLike", "ZerosLike")(unchanged)
shape_rule("Fill")(held_by(0))
shape_rule("LinSpace")(counted_by(2))


@shape_rule("Range")
def range_of(call: ShapeCall) -> Shape:
    start, limit, delta = (call.value(i) for i in range(3))
    if start is None or limit is None or delta is None:
        return Shape((None,))
    if not delta.item():
        raise GraphError("a range with a step of 0 has no end")
    if (limit.item() - start.item()) * delta.item() < 0:
        return Shape((None,))  # refused when it runs
    from pocketgraph.kernels.range_length import steps_between

    return Shape((steps_between(start, limit, delta),))
