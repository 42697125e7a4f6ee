"""What an assignment leaves in its variable, as an op that computes it from the value before."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType, Graph, Node, const, opdefs
from pocketgraph.graph.attr import AttrValue
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.edit import claim_name

_NEW_VALUES = {
    "Assign": "",
    "AssignAdd": "AddV2",
    "AssignSub": "Sub",
    "StridedSliceAssign": "TensorStridedSliceUpdate",
    **{f"ScatterNd{end}": f"TensorScatter{end}" for end in ("Update", "Add", "Sub", "Min", "Max")},
    "ScatterNdMul": "Mul",
    "ScatterNdDiv": "Div",
}
"""Not a trait: assignments, by what their names have in common (``AssignAdd``, ``AssignAddVariableOp``), and what
computes their variable's new value ("" where it is the operand). ``ScatterAdd`` is ``ScatterNdAdd`` of rows;
``ScatterMul``, of rows alone, is a product with factors of all rows."""


def value_op(op: str) -> str | None:
    """The op that computes what an assignment leaves in its variable; "" where that is the operand, None where the
    op is not known as an assignment."""
    kind = op.removeprefix("Resource").removesuffix("VariableOp")
    is_rows = kind.startswith("Scatter") and not kind.startswith("ScatterNd")
    if kind == op and not opdefs.updates_variable(op):
        return None
    return _NEW_VALUES.get(kind.replace("Scatter", "ScatterNd") if is_rows else kind)


def divides_in_turn(graph: Graph, node: Node) -> bool:
    """Whether it divides a row of whole numbers once after another, as far as is known, which rounds each time."""
    if value_op(node.op) != "Div" or not node.dtype("T", node.dtype("dtype", INT32)).is_integer:
        return False
    rows = graph.constant(node.data_inputs[1])
    return rows is None or len(np.unique(rows.numpy())) < rows.size


def new_value(node: Node, before: str, dtype: DType, taken: set[str]) -> list[Node]:
    """The nodes that compute what an assignment leaves in its variable, the last of them the value; none where that is
    the operand."""
    op = value_op(node.op)
    if not op:
        return []
    nodes = []
    operands = list(node.data_inputs[1:])
    name = claim_name(f"{node.name}/value", taken)
    if "Scatter" in node.op and "ScatterNd" not in node.op:  # of rows: updates may be one number for all
        rows, updates = operands
        types: dict[str, AttrValue] = {"T": node.dtype("Tindices")}
        last, zero = const(f"{name}/axis", -1, INT32), const(f"{name}/zero", 0, INT32)
        nodes = [
            last, zero,
            Node(f"{name}/row", "ExpandDims", [rows, zero.name], {**types, "Tdim": INT32}),  # a number too
            Node(f"{name}/rows", "ExpandDims", [f"{name}/row", last.name], {**types, "Tdim": INT32}),
            Node(f"{name}/old", "GatherV2", [before, f"{name}/row", zero.name],
                 {"Tparams": dtype, "Tindices": types["T"], "Taxis": INT32}),
            Node(f"{name}/shape", "Shape", [f"{name}/old"], {"T": dtype, "out_type": INT32}),
            Node(f"{name}/updates", "BroadcastTo", [updates, f"{name}/shape"], {"T": dtype, "Tidx": INT32}),
        ]  # fmt: skip
        operands = [f"{name}/rows", f"{name}/updates"]
        if op in ("Mul", "Div"):
            nodes += [
                Node(f"{name}/whole", "Shape", [before], {"T": dtype, "out_type": INT32}),
                Node(f"{name}/count", "GatherV2", [f"{name}/whole", zero.name, zero.name],
                     {"Tparams": INT32, "Tindices": INT32, "Taxis": INT32}),
                Node(f"{name}/factors", "UnsortedSegmentProd", [f"{name}/updates", f"{name}/row", f"{name}/count"],
                     {"T": dtype, "Tindices": types["T"], "Tnumsegments": INT32}),
            ]  # fmt: skip
            operands = [f"{name}/factors"]
    kept = {key: held for key, held in node.attrs.items() if key in opdefs.definition(op).attrs}
    return [*nodes, Node(name, op, [before, *operands], {**kept, "T": dtype})]
