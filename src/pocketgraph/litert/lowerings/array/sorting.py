"""Lowerings of order: the largest k."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import INT32
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.program import Value


@lowers("TopK", "TopKV2", takes=("float", "int32", "int64", "uint8"))
def top_k(emit: Emit, node: Node, source: Value) -> list[Value]:
    count = int(node.attr("k", 0)) if node.op == "TopK" else int(np.asarray(emit.static(1, "k")).reshape(-1)[0])
    if not source.shape or not 1 <= count <= source.shape[-1]:
        raise emit.unsupported(f"the top {count} of {list(source.shape)}")
    if not node.attr("sorted", True):
        raise emit.unsupported("the top elements in no order, which every engine chooses for itself")
    if node.attr("index_type", INT32) is not INT32:
        raise emit.unsupported("TopKV2 with long indices")
    shape = (*source.shape[:-1], count)
    operand = emit.const(count, np.int32)
    return emit.add_many("TOPK_V2", [source, operand], [(source.dtype, shape), (INT32, shape)])
