"""Gradients of reads of variables: what is read is differentiated by the variable itself."""

from __future__ import annotations

from pocketgraph.differentiation.array.gather_scatter import summed_rows
from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient

not_differentiable(
    "Assign", "AssignAdd", "AssignSub", "Variable", "VariableV2", "VarHandleOp", "VarIsInitializedOp", "VariableShape",
    "IsVariableInitialized", "LookupTableFind", "LookupTableFindV2",
)  # fmt: skip


gradient("ReadVariableOp")(lambda op: op.grad)


@gradient("ResourceGather")
def gather_from_variable(op: NodeGradient) -> str:
    shape = op.add("VariableShape", op.inputs[0])
    return summed_rows(op, op.grad, op.inputs[1], shape)
