"""Variables as nodes: made, initialized and read, by reference (VariableV2) or by resource (VarHandleOp)."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape
from pocketgraph.graph.dtype import RESOURCE

INIT = "init"
"""The operation that gives all variables their first values."""
GLOBAL_STEP = "global_step"
"""The variable that counts the steps of training."""


def add_variable(builder: GraphBuilder, name: str, initial: str, dtype: DType, shape: Shape, *, resource: bool) -> str:
    """Adds a variable with the node ``NAME/Assign`` that sets it to ``initial``; returns that node's name."""
    if resource:
        attrs: dict[str, AttrValue] = {"dtype": dtype, "shape": shape, "shared_name": name.encode()}
        builder.put(Node(name, "VarHandleOp", (), attrs, builder.device))
        return builder.add("AssignVariableOp", name, initial, name=f"{name}/Assign", dtype=dtype)
    attrs = {"dtype": dtype, "shape": shape, "container": b"", "shared_name": b""}
    builder.put(Node(name, "VariableV2", (), attrs, builder.device))
    return builder.add("Assign", name, initial, name=f"{name}/Assign")


def read_variable(builder: GraphBuilder, name: str, dtype: DType) -> str:
    """Adds the node ``NAME/read`` that reads a variable."""
    if builder.dtype(name) is RESOURCE:
        return builder.add("ReadVariableOp", name, name=f"{name}/read", dtype=dtype)
    return builder.add("Identity", name, name=f"{name}/read")


def value_of(builder: GraphBuilder, node: Node) -> str:
    """The tensor of a variable's value: the node ``NAME/read`` where that is one, else a new one."""
    name = f"{node.name}/read"
    there = builder.graph.nodes.get(name)
    if there is not None and there.op in ("Identity", "ReadVariableOp") and there.data_inputs == (node.name,):
        return name
    return read_variable(builder, node.name, node.dtype("dtype").base)


def known_kind(graph: Graph) -> bool:
    """Whether the graph's variables are resources, so that new ones become of the same kind."""
    return any(node.op == "VarHandleOp" for node in graph)


def with_initialization(graph: Graph, assigned: Iterable[str]) -> Graph:
    """The graph with an operation ``init`` that runs these nodes too, besides what it ran before."""
    before = graph.nodes.get(INIT)
    if before is not None and before.op == "NoOp":
        extended = before.replace(inputs=(*before.inputs, *(f"^{name}" for name in assigned)))
        return graph.replace([*(node for node in graph if node is not before), extended])
    builder = GraphBuilder(graph)
    name = builder.add("NoOp", name=INIT, control=assigned)
    return builder.finished([name])
