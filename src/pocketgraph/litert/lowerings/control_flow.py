"""Lowerings of ops that do nothing."""

from __future__ import annotations

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers


@lowers("NoOp")
def nothing(emit: Emit, node: Node) -> None:
    """Only orders execution, which a part does by its data."""
