"""Gradients of ops that pass their inputs on, and of those that none flows through."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError

not_differentiable(
    "StopGradient", "Shape", "ShapeN", "Rank", "Size", "ZerosLike", "OnesLike", "Const", "Where", "OneHot",
    "BroadcastGradientArgs", "InvertPermutation", "ConcatOffset", "Unique", "UniqueWithCounts", "NonMaxSuppression",
    "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
)  # fmt: skip


@gradient(
    "Identity",
    "Snapshot",
    "CheckNumerics",
    "CheckNumericsV2",
    "EnsureShape",
    "DebugGradientIdentity",
    "PlaceholderWithDefault",
    "Print",
    "XlaSharding",
)
def passed(op: NodeGradient) -> str:
    return op.grad


gradient("IdentityN")(lambda op: op.grads)


@gradient("PreventGradient")
def prevented(op: NodeGradient) -> str:
    raise GraphError(f"it forbids gradients: {op.attr('message')}")
