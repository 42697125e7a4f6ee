"""Shape rules of the iterators of input pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("IteratorGetNext", "IteratorGetNextSync", "OneShotIterator", "IteratorFromStringHandle", "IteratorV2")
def iterator(call: ShapeCall) -> Sequence[Shape]:
    if not call.node.op.startswith("IteratorGetNext"):
        return [SCALAR]
    return [shape if isinstance(shape, Shape) else UNKNOWN for shape in call.attr("output_shapes", ())]
