"""The types of a node's inputs and outputs, with the original tool's insistence on attributes that have a default."""

from __future__ import annotations

from pocketgraph.errors import TransformError
from pocketgraph.graph import DType, Node, opdefs


def output_types(node: Node, *, strict: bool) -> tuple[DType, ...]:
    """The types of what a node gives.

    Args:
        strict: an attribute that says a type, or how many, must be there, although the op has a default.

    Raises:
        TransformError: such an attribute is missing, with ``strict``.
        GraphError: the op is unknown, or lacks such an attribute without a default.
    """
    if strict:
        _check_attributes(node)
    return opdefs.output_dtypes(node)


def input_types(node: Node, *, strict: bool) -> tuple[DType, ...]:
    """The types of what a node takes; as ``output_types``."""
    if strict:
        _check_attributes(node)
    return opdefs.input_dtypes(node)


def _check_attributes(node: Node) -> None:
    found = opdefs.definition(node.op)
    newer = {name for name, attr in found.attrs.items() if attr.since != opdefs.OLD} if found.only != opdefs.NEW else ()
    for arg in (*found.inputs, *found.outputs):
        for attr in (arg.type_attr, arg.type_list_attr, arg.number_attr):
            if attr and attr not in node.attrs and attr not in newer:
                hint = "run add_default_attributes first"
                raise TransformError(f"No attr named '{attr}' in the {node.op}", where=f"node '{node.name}'", hint=hint)
