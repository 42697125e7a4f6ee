"""Lowerings of products of matrices."""

from __future__ import annotations

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.program import Value


@lowers("MatMul", takes=("float",))
def matmul(emit: Emit, node: Node, left: Value, right: Value) -> Value:
    if node.attr("transpose_a", False):
        left = emit.transpose(left, (1, 0))
    turned = bool(node.attr("transpose_b", False))
    if left.shape[1] != right.shape[turned]:  # LiteRT would take 2 x 3 numbers for 3 x 2
        raise emit.unsupported(f"a product of {list(left.shape)} and {list(right.shape)}")
    if right.constant is None:
        columns = right.shape[0] if turned else right.shape[1]
        shape = (left.shape[0], columns)
        return emit.add("BATCH_MATMUL", [left, right], shape, adj_x=False, adj_y=turned)
    weights = right if turned else emit.transpose(right, (1, 0))
    shape = (left.shape[0], weights.shape[0])
    return emit.add("FULLY_CONNECTED", [left, weights, None], shape, activation="", keep_num_dims=False)


@lowers("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", takes=("float",))
def batch_matmul(emit: Emit, node: Node, left: Value, right: Value) -> Value:
    if not 2 <= len(left.shape) <= 5 or not 2 <= len(right.shape) <= 5:
        raise emit.unsupported(f"a batched product of rank {len(left.shape)} and {len(right.shape)}")
    return emit.add(
        "BATCH_MATMUL",
        [left, right],
        emit.output()[1],
        adj_x=bool(node.attr("adj_x", False)),
        adj_y=bool(node.attr("adj_y", False)),
    )
