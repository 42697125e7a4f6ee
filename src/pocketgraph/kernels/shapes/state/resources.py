"""Shape rules of queues, lookup tables, iterators and checkpoint files."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.common_rules import no_outputs, scalar
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("QueueDequeueV2", "QueueDequeue")(lambda call: [UNKNOWN] * len(call.attr("component_types", ())))


shape_rule("MutableDenseHashTableV2", "HashTableV2")(scalar)


@shape_rule("LookupTableFindV2", "LookupTableFind")
def table_lookup(call: ShapeCall) -> Shape:
    if call.shape(2).rank not in (0, None):
        raise GraphError("the default value should be a scalar")
    return call.shape(1)


@shape_rule("IteratorGetNext", "IteratorGetNextSync", "OneShotIterator", "IteratorFromStringHandle", "IteratorV2")
def iterator(call: ShapeCall) -> Sequence[Shape]:
    if not call.node.op.startswith("IteratorGetNext"):
        return [SCALAR]
    return [shape if isinstance(shape, Shape) else UNKNOWN for shape in call.attr("output_shapes", ())]


shape_rule("ReadFile")(scalar)
shape_rule("SaveV2", "Save", "SaveSlices", "MergeV2Checkpoints")(no_outputs)
