"""Lowering of the intervals that elements are in."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.math.reductions import reduced
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.program import Value


@lowers("Bucketize", takes=("float", "int32", "int64"))
def interval(emit: Emit, node: Node, source: Value) -> Value:
    """How many boundaries an element is not below; NaN is below none."""
    dtype, shape = emit.output()
    limits = np.array(node.attr("boundaries", []), np.float32)
    if not limits.size:
        return emit.const(np.zeros(shape, dtype.numpy))
    values = source if source.dtype is FLOAT else emit.add("CAST", [source], source.shape, FLOAT)
    column = emit.reshape(values, (source.size, 1))
    below = binary(emit, "LESS", column, emit.const(limits), BOOL)
    counted = reduced(emit, "SUM", emit.add("CAST", [below], below.shape, FLOAT), [1], keep=False)
    found = binary(emit, "SUB", number(emit, limits.size), counted)
    return emit.reshape(emit.add("CAST", [found], found.shape, dtype), shape)
