"""The table of lowerings: how LiteRT does each op. lowerings/ is the table with all rows in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., None])

LOWERINGS: dict[str, Callable[[Any, Any], None]] = {}
"""What is called with an Emit (see emitter.py) and a node, by op."""


def lowers(*ops: str) -> Callable[[F], F]:
    """Registers a function as what turns these ops into LiteRT operations.

    It reads the node's operands from ``emit``, adds operations, and ends with ``emit.result``. It raises Unsupported
    for what it cannot express exactly.
    """

    def register(function: F) -> F:
        for op in ops:
            if op in LOWERINGS:
                raise ValueError(f"{op} has two lowerings")
            LOWERINGS[op] = function
        return function

    return register
