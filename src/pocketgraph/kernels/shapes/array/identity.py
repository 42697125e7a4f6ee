"""Shape rules of constants, placeholders and what hands its input on."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import merge
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule(
    "CheckNumerics", "CheckNumericsV2", "Copy", "CopyHost", "DebugGradientIdentity", "DebugIdentity", "DebugNanCount",
    "DeepCopy", "GuaranteeConst", "HostConst", "Identity", "PreventGradient", "Snapshot", "StopGradient",
    "XlaSharding",
)(unchanged)  # fmt: skip


shape_rule("IdentityN", "XlaOptimizationBarrier")(lambda call: call.inputs)
shape_rule("Const")(lambda call: Shape(call.node.tensor.shape))


@shape_rule("Placeholder", "PlaceholderV2")
def placeholder(call: ShapeCall) -> Shape:
    shape = call.declared()
    return UNKNOWN if call.producer <= LEGACY and shape.rank == 0 else shape


@shape_rule("PlaceholderWithDefault")
def placeholder_with_default(call: ShapeCall) -> Shape:
    shape = call.declared()
    merge(shape, call.shape(0))
    return shape


shape_rule("EnsureShape")(lambda call: merge(call.declared(), call.shape(0)))


LEGACY = 21  # up to this GraphDef version a placeholder's scalar shape means that none was given
