"""Shape rule of rows paired with columns."""

from __future__ import annotations

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("BipartiteMatch")
def bipartite_match(call: ShapeCall) -> list[Shape]:
    dims = call.shape(0).dims
    return [Shape((size,)) for size in dims] if dims is not None and len(dims) == 2 else [Shape((None,))] * 2
