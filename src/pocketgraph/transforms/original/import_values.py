"""What TensorFlow 1.15 knows of values while it imports a graph, which is less than could be known."""

from __future__ import annotations

from typing import Any

from pocketgraph.graph import Node
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes.infer import Walk
from pocketgraph.kernels.shapes.partial_values import Known, Partial

QUESTIONS = ops_with("shape")
PARTLY_KNOWN = ops_with("joins") - {"Pack"} | {"StridedSlice"}
"""Not a trait: ops whose sizes 1.15 knows where it knows some of the sizes that they are made of."""


class ImportWalk(Walk):
    """A Shape, Rank or Size that an op takes itself has a value for it only where it is read as a shape; and of a shape
    of which some sizes are unknown, the others are known as sizes only, through slices and joins.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._partly: set[str] = set()  # nodes that are made of some sizes of a shape

    def is_constant_or_copy(self, node: Node) -> bool:
        return node.op == "Const" and super().is_constant_or_copy(node)

    def read(self, node: Node, sources: list[str], known: list[Known]) -> tuple[list[int], list[Known]]:
        partly = [at for at, name in enumerate(sources) if isinstance(known[at], Partial) or name in self._partly]
        computable = known
        if partly:
            self._partly.add(node.name)
            if node.op not in PARTLY_KNOWN:
                computable = [None if at in partly else value for at, value in enumerate(known)]
        nodes = self.graph.nodes
        asked = [at for at, name in enumerate(sources) if name in nodes and nodes[name].op in QUESTIONS]
        return partly + asked, computable
