"""Finds the variables of a graph."""

from __future__ import annotations

from dataclasses import dataclass

from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.op_traits import PASSES_OR_ROUTES, REFERENCE_VARIABLES, REFERENCES, ops_with

HANDLE_OP = "VarHandleOp"
ASSIGNS = ("Assign", "AssignVariableOp")
REFERENCE_CARRIERS = REFERENCES & ops_with("enter", "switch") | {"RefIdentity"}
"""The references that freezing follows to a variable; loops are resolved before."""


@dataclass(frozen=True, slots=True)
class VariableNode:
    """One variable node.

    Attributes:
        name: the node's name.
        dtype: of its elements.
        shape: as far as the graph tells.
        shared_name: under which the resource is known to others, when that is said.
        is_resource: a handle to it goes through the graph (VarHandleOp), not a reference.
    """

    name: str
    dtype: DType
    shape: Shape
    shared_name: str
    is_resource: bool


def is_variable(node: Node) -> bool:
    """Whether a node holds a variable: a reference variable of TensorFlow 1 or the handle of a resource variable."""
    return node.op in REFERENCE_VARIABLES or node.op == HANDLE_OP


def variables(graph: Graph) -> dict[str, VariableNode]:
    """The graph's variables by node name, in graph order."""
    return {node.name: _variable(node) for node in graph if is_variable(node)}


def _variable(node: Node) -> VariableNode:
    shape = node.shape("shape")
    if shape is None or (node.op == "Variable" and shape.rank == 0):
        shape = Shape(None)  # the oldest op writes an unknown shape as a scalar's
    shared = node.attr("shared_name", b"")
    shared_name = shared.decode("utf-8", "replace") if isinstance(shared, bytes) else ""
    return VariableNode(node.name, node.dtype("dtype").base, shape, shared_name, node.op == HANDLE_OP)


def variable_behind(graph: Graph, ref: str) -> str | None:
    """The name of the variable that a reference or handle comes from, through carriers; None when it is none."""
    node = graph.find_producer(ref, PASSES_OR_ROUTES | REFERENCE_CARRIERS)
    return node.name if node is not None and is_variable(node) else None
