"""Shape rules of bytes as numbers."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("DecodeRaw")
def decode_raw(call: ShapeCall) -> Shape:
    shape = call.shape(0)
    return UNKNOWN if shape.dims is None else Shape((*shape.dims, None))
