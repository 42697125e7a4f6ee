"""Checks a node as the original does when it imports a graph: name, attributes, inputs, what it is to stand with."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from pocketgraph.errors import GraphError, TransformError
from pocketgraph.graph import AttrValue, DType, Node, opdefs
from pocketgraph.graph.attr import kind_of
from pocketgraph.graph.colocation import colocated_with
from pocketgraph.graph.dtype import INVALID

HINT = "mend the graph, or write fold_constants(ignore_errors=true) to pass over this rule"
NODE_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./-]*")
"""TensorFlow 1.15's; later ones allow ``>`` and ``\\`` as well."""


def check_name(node: Node) -> None:
    """Raises TransformError when TensorFlow 1.15 imports no node of this name."""
    if not NODE_NAME.fullmatch(node.name):
        hint = "rename it, or compat=fixed goes on"
        raise TransformError(f"Node '{node.name}': Node name contains invalid characters", hint=hint)


def check_inputs(node: Node, sources: Sequence[tuple[str, int, tuple[DType, ...] | None]]) -> None:
    """Compares the data inputs of a node with its op's signature.

    Args:
        sources: for each data input the producer's name, the port, and the types of its outputs where known.

    Raises:
        TransformError: there are too many or too few inputs, or one comes from an output that is not there, or is of
            another type.
    """
    try:
        expected = opdefs.input_dtypes(node)
    except GraphError:
        return
    where = f"node '{node.name}'"
    if len(expected) != len(sources):
        raise TransformError(f"the {node.op} takes {len(expected)} inputs, not {len(sources)}", where=where, hint=HINT)
    for index, ((name, port, dtypes), wanted) in enumerate(zip(sources, expected, strict=True)):
        if dtypes is None:
            continue
        if port >= len(dtypes):
            raise TransformError(
                f"it takes output {port} of '{name}', which has {len(dtypes)} outputs", where=where, hint=HINT
            )
        given = dtypes[port]
        if given is not wanted and (wanted.is_ref or given.base is not wanted):
            raise TransformError(
                f"Input {index} of node {node.name} was passed {given.name} from {name}:{port} incompatible with "
                f"expected {wanted.name}",
                hint=HINT,
            )


def check_colocation(node: Node, names: Container[str]) -> None:
    """Raises TransformError when a node asks to be on the device of a node that is not in the graph."""
    for other in colocated_with(node):
        if other not in names:
            raise TransformError(
                f"Node '{node.name}' expects to be colocated with unknown node '{other}'",
                hint="run remove_attribute(attribute_name=_class) first",
            )


def check_attributes(node: Node) -> None:
    """Compares the attributes of a node with its op's signature in TensorFlow 1.15, where it knows the op.

    Raises:
        TransformError: one is missing, unknown, of another kind, or has a value that the op does not take.
    """
    found = opdefs.find(node.op)
    if found is None or found.only == opdefs.NEW:
        return
    old = {name: attr for name, attr in found.attrs.items() if attr.since == opdefs.OLD}
    for name, value in node.attrs.items():
        if name in old:
            _check_value(node, old[name], value)
        elif not name.startswith("_"):
            raise TransformError(
                f"NodeDef mentions attr '{name}' not in Op<name={node.op}> of TensorFlow 1.15",
                where=f"node '{node.name}'",
                hint=f"run remove_attribute(attribute_name={name}) first, or compat=fixed goes on",
            )
    for name, attr in old.items():
        if attr.default is None and name not in node.attrs:
            raise TransformError(f"the {node.op} has no attribute '{name}'", where=f"node '{node.name}'", hint=HINT)


def _check_value(node: Node, attr: opdefs.AttrDef, value: AttrValue) -> None:
    kind, where = kind_of(value), f"node '{node.name}'"
    if kind not in (attr.kind, "placeholder", "opaque") and not (kind == "list" and attr.kind.startswith("list(")):
        raise TransformError(f"the attribute '{attr.name}' is of kind {kind}, not {attr.kind}", where=where, hint=HINT)
    members = value if isinstance(value, tuple) else (value,)
    if any(isinstance(member, DType) and (member.is_ref or member is INVALID) for member in members):
        raise TransformError(f"the attribute '{attr.name}' is a reference or no type", where=where, hint=HINT)
    allowed = set(attr.allowed) - set(attr.newer)
    wrong = next((member for member in members if allowed and member not in allowed), None)
    if wrong is not None:
        raise TransformError(f"the attribute '{attr.name}' does not take the value {wrong}", where=where, hint=HINT)
    size = len(members) if attr.kind.startswith("list(") else value
    if attr.minimum is not None and isinstance(size, int) and size < attr.minimum:
        raise TransformError(f"the attribute '{attr.name}' is less than {attr.minimum}", where=where, hint=HINT)
