"""Ops that take a reference to a variable, or its handle, become those that take a value."""

from __future__ import annotations

from pocketgraph.freezing.constant_substitution import READERS, values_for_handles
from pocketgraph.graph import DType, Graph, Node
from pocketgraph.graph.op_traits import PASSES_OR_ROUTES, REFERENCES

PLAIN = {op: op.removeprefix("Ref") for op in REFERENCES - {"RefSelect"}}


def repaired(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Frozen variables are values, and TensorFlow refuses to load a graph that wants references to them ("passed float
    from w:0 incompatible with expected float_ref"), or handles of them ("… with expected resource").

    Given:   w = Const(float [1.0, 2.0])
             p = Placeholder(dtype=bool)
             s = RefSwitch(w, p, T=float_ref)
             y = Neg(s:1, T=float)
    Result:  w = Const(float [1.0, 2.0])
             p = Placeholder(dtype=bool)
             s = Switch(w, p, T=float)
             y = Neg(s:1, T=float)

    A ReadVariableOp of a constant becomes an Identity, ResourceGather a GatherV2, and so on.
    """
    handles = constants_for_handles(graph)
    lines: dict[str, str] = {}

    def change(node: Node) -> Node:
        attrs = node.attrs
        refs = [key for key, value in attrs.items() if _has_ref(value)]
        if node.op not in PLAIN and not refs:
            return node
        if node.op in PLAIN:
            lines[node.name] = f"'{node.name}': {node.op} is {PLAIN[node.op]}"
        else:
            lines[node.name] = f"'{node.name}': the types in {', '.join(refs)} are no references any more"
        return node.replace(
            op=PLAIN.get(node.op, node.op),
            attrs={key: _base(value) if key in refs else value for key, value in attrs.items()},
        )

    graph = graph.map_nodes(change)
    made = values_for_handles(graph, handles) if handles else graph
    for node in graph:
        if node.op in READERS and (now := made[node.name]).op != node.op:
            lines[node.name] = f"'{node.name}': {node.op} of a constant is {now.op}"
    return made, lines


def constants_for_handles(graph: Graph) -> dict[str, DType]:
    """The constants that something reads as by the handle of a variable, with their types."""
    taken = (read_constant(graph, node) for node in graph)
    return {node.name: node.dtype("dtype") for node in taken if node is not None}


def read_constant(graph: Graph, node: Node) -> Node | None:
    """The constant that a node reads as by the handle of a variable."""
    if node.op not in READERS or not node.data_inputs:
        return None
    source = graph.find_producer(node.data_inputs[0], PASSES_OR_ROUTES)
    return source if source is not None and source.op == "Const" else None


def _has_ref(value: object) -> bool:
    if isinstance(value, tuple):
        return any(isinstance(member, DType) and member.is_ref for member in value)
    return isinstance(value, DType) and value.is_ref


def _base(value: object) -> DType | tuple[DType, ...]:
    if isinstance(value, tuple):
        return tuple(member.base for member in value if isinstance(member, DType))
    assert isinstance(value, DType)
    return value.base
