"""Reads the constants that rules work on, with the original tool's errors."""

from __future__ import annotations

from pocketgraph.errors import TransformError
from pocketgraph.graph import DType, Node, Tensor


def checked_constant(node: Node) -> Tensor:
    """The value of a ``Const``; its elements are not read.

    Raises:
        TransformError: its ``dtype`` or ``value`` is missing.
    """
    dtype, value = node.attrs.get("dtype"), node.attrs.get("value")
    if not isinstance(dtype, DType):
        raise TransformError(f"No 'dtype' attribute for Const node {node.name}")
    if not isinstance(value, Tensor):
        raise TransformError(f"No 'value' attribute for Const node {node.name}")
    return value
