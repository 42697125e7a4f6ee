"""Shape rules of lookup tables."""

from __future__ import annotations

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.common_rules import scalar
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("MutableDenseHashTableV2", "HashTableV2")(scalar)


@shape_rule("LookupTableFindV2", "LookupTableFind")
def table_lookup(call: ShapeCall) -> Shape:
    if call.shape(2).rank not in (0, None):
        raise GraphError("the default value should be a scalar")
    return call.shape(1)
