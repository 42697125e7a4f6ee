"""Checks a node as the original does when it imports a graph: its inputs' types, and whom it is to be placed with."""

from __future__ import annotations

from collections.abc import Container, Sequence

from pocketgraph.errors import GraphError, TransformError
from pocketgraph.graph import DType, Node, opdefs

HINT = "mend the graph, or write fold_constants(ignore_errors=true) to pass over this rule"

COLOCATED = b"loc:@"


def dtypes_of(node: Node) -> tuple[DType, ...] | None:
    """The type of each output; None for functions and for attributes that do not tell."""
    try:
        return opdefs.output_dtypes(node)
    except GraphError:
        return None


def check_inputs(node: Node, sources: Sequence[tuple[str, int, tuple[DType, ...] | None]]) -> None:
    """Compares the data inputs of a node with its op's signature.

    Args:
        node: the node.
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
    wanted = node.attrs.get("_class")
    for value in wanted if isinstance(wanted, tuple) else ():
        if isinstance(value, bytes) and value.startswith(COLOCATED):
            other = value[len(COLOCATED) :].decode("utf-8", "replace")
            if other not in names:
                raise TransformError(
                    f"Node '{node.name}' expects to be colocated with unknown node '{other}'",
                    hint="run remove_attribute(attribute_name=_class) first",
                )
