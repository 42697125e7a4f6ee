"""Shape rules of queues."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("QueueDequeueV2", "QueueDequeue")
def dequeue(call: ShapeCall) -> Sequence[Shape]:
    return [UNKNOWN] * len(call.attr("component_types", ()))
