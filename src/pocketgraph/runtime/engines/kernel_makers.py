"""The table of quicker calls: for each op what makes a call in the place of its kernel's, for a node as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketgraph.graph import Node
from pocketgraph.kernels.arrays import Array

Call = Callable[..., Any]
"""What computes a node; it takes all inputs."""
Constants = Mapping[int, Array]
"""The values of the inputs that are constants, by position."""
Maker = Callable[[Node, Constants, Call], "Call | None"]
"""Makes the quicker call of the kernel's, or None where the node is not plain."""
MAKERS: dict[str, Maker] = {}


def quickens(*ops: str) -> Callable[[Maker], Maker]:
    """Registers a function as what makes quicker calls of these ops."""

    def register(maker: Maker) -> Maker:
        MAKERS.update(dict.fromkeys(ops, maker))
        return maker

    return register
