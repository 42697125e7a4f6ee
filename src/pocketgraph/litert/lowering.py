"""The table of lowerings: how LiteRT does each op. its rows are in lowerings/, by family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from pocketgraph.kernels.op_table import OpTable

F = TypeVar("F", bound=Callable[..., None])

Lowering: TypeAlias = Callable[[Any, Any], None]
"""What is called with an Emit (see emitter.py) and a node."""

LOWERINGS: OpTable[Lowering] = OpTable("lowering", "pocketgraph.litert.lowerings", "LOWERINGS")


def lowers(*ops: str) -> Callable[[F], F]:
    """Registers a function as what turns these ops into LiteRT operations.

    It reads the node's operands from ``emit``, adds operations, and ends with ``emit.result``. It raises Unsupported
    for what it cannot express exactly.
    """

    def register(function: F) -> F:
        for op in ops:
            LOWERINGS.add(op, function)
        return function

    return register
