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


@lowers("Bucketize")
def interval(emit: Emit, node: Node) -> None:
    """How many boundaries an element is not below; NaN is below none."""
    source = emit.require(emit.input(0), "float", "int32", "int64")
    dtype, shape = emit.output()
    limits = np.array(node.attr("boundaries", []), np.float32)
    if not limits.size:
        emit.result(emit.const(np.zeros(shape, dtype.numpy)))
        return
    values = source if source.dtype is FLOAT else emit.add("CAST", [source], source.shape, FLOAT)
    column = emit.reshape(values, (source.size, 1))
    below = binary(emit, "LESS", column, emit.const(limits), BOOL)
    counted = reduced(emit, "SUM", emit.add("CAST", [below], below.shape, FLOAT), [1], keep=False)
    found = binary(emit, "SUB", number(emit, limits.size), counted)
    emit.result(emit.reshape(emit.add("CAST", [found], found.shape, dtype), shape))
