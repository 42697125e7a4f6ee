"""Shape rules of variables."""

from __future__ import annotations

from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import merge
from pocketgraph.kernels.shapes.array.gather_scatter import gather
from pocketgraph.kernels.shapes.common_rules import behind_handle, no_outputs, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule(
    "RefIdentity", "AssignAdd", "AssignSub", "ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv",
    "ScatterMin", "ScatterMax", "ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub", "ScatterNdMin", "ScatterNdMax",
    "StridedSliceAssign", "CountUpTo", "DestroyTemporaryVariable",
)(unchanged)  # fmt: skip
shape_rule("ResourceGather")(gather)
shape_rule("VarHandleOp", "IsVariableInitialized", "VarIsInitializedOp")(scalar)
shape_rule("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")(no_outputs)
shape_rule("ReadVariableOp")(behind_handle)


@shape_rule("Variable", "VariableV2", "TemporaryVariable")
def variable(call: ShapeCall) -> Shape:
    shape = call.declared()
    return UNKNOWN if call.node.op == "Variable" and shape.rank == 0 else shape


@shape_rule("VariableShape")
def variable_shape(call: ShapeCall) -> Shape:
    behind = call.handle(0)
    return Shape((behind.rank,))


@shape_rule("Assign")
def assign(call: ShapeCall) -> Shape:
    return merge(call.shape(0), call.shape(1)) if call.attr("validate_shape", True) else call.shape(1)
