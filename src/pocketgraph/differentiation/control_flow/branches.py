"""Gradients of conditionals of TensorFlow 1: the way back goes through the same branch."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError
from pocketgraph.graph.dtype import BOOL, RESOURCE


@gradient("Merge")
def merge(op: NodeGradient) -> Sequence[str]:
    """To the branch that the value came from: the Merge itself says which it was."""
    if len(op.inputs) != 2:
        raise GraphError("a Merge of other than two branches has no gradient here")
    way = op.add("Switch", op.grad, op.add("Cast", op.output(1), DstT=BOOL))
    return way, f"{way}:1"


@gradient("Switch")
def switch(op: NodeGradient) -> str:
    """From the branch that ran; zeros where it did not use the value."""
    data, condition = op.inputs
    no, yes = op.grads
    used = no or yes
    assert used is not None  # or it would not be on the way back
    if no is None or yes is None:
        if op.builder.dtype(data) is RESOURCE:  # its gradient is that of the variable's value
            data = op.add("ReadVariableOp", data, dtype=op.builder.dtype(used).base)
        zeros = op.add("Switch", op.zeros(data), condition)
        no, yes = no or zeros, yes or f"{zeros}:1"
    return op.add("Merge", [no, yes])
