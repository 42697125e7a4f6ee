"""Nodes that compute the same from the same: the second takes the first one's results.

Wide-and-deep nets hash, cross and bucketize a column for each of their halves, and every layer asks anew for the shape
that it works on. TensorFlow merges such nodes as well before it runs a graph.
"""

from __future__ import annotations

from typing import Any

from pocketgraph.graph import Node
from pocketgraph.graph.op_traits import ops_with

REPEATED = ops_with("repeatable")
"""Ops whose results follow from their inputs and attributes alone, and which graphs repeat."""


def subexpression_key(node: Node, inputs: tuple[int, ...], atoms: object) -> tuple[Any, ...] | None:
    """What two nodes of these ops have in common when one does for both; None for other ops.

    Args:
        inputs: the slots of its inputs.
        atoms: the conditions under which it runs.
    """
    if node.op not in REPEATED:
        return None
    attrs = tuple(sorted((name, value) for name, value in node.attrs.items() if name[:1] != "_"))
    found = (node.op, inputs, atoms, attrs)
    try:
        hash(found)
    except TypeError:
        return None
    return found
