"""Elements of tensors of whole numbers that are the same for all sizes, but for a constant.

length ── FloorMod ──┬─ Pack [0, rest] ── paddings     paddings[1] - crops[1] is 2 for all lengths
                     └─ AddV2(-2) ── Pack ── crops
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, canonical, parse_ref
from pocketgraph.graph.op_traits import MOVES, PASSES, SUMS
from pocketgraph.kernels import registry
from pocketgraph.kernels.shapes import Inferred

FIRST = 1 << 40  # the number of the first element that is followed through a node; what is known there is smaller
DEEPEST = 64  # nodes that are followed


class _Term(NamedTuple):
    """An element of some tensor, plus a number.

    Attributes:
        ref: the tensor; "" where nothing but the number is left.
        place: of the element, in the order of memory.
        number: what is added.
    """

    ref: str
    place: int
    number: int


class SizeTerms:
    """Follows elements back to where they are computed.

    Args:
        inferred: what is known of it while sizes are open.
    """

    def __init__(self, graph: Graph, inferred: Inferred) -> None:
        self._graph = graph
        self._inferred = inferred

    def of(self, ref: str, place: int, depth: int = DEEPEST) -> _Term:
        """What an element comes to.

        Args:
            ref: the tensor, with its port.
            place: of the element, in the order of memory.
            depth: how many nodes to follow at most.
        """
        known = self._inferred.elements(ref)
        number = known[place] if known is not None and place < len(known) else None
        if number is not None:
            return _Term("", 0, number)
        name, port, _ = parse_ref(ref)
        node = self._graph.nodes.get(name)
        opaque = _Term(ref, place, 0)
        if node is None or port or not depth:
            return opaque
        taken = [canonical(each) for each in node.data_inputs]
        if node.op in PASSES:
            return self.of(taken[0], place, depth - 1)
        if node.op in SUMS and len(taken) == 2:
            return self._sum(ref, place, taken, depth) or opaque
        if node.op in MOVES:
            source = self._moved(ref, place)
            return opaque if source is None else self.of(*source, depth - 1)
        return opaque

    def _sum(self, ref: str, place: int, taken: list[str], depth: int) -> _Term | None:
        shape = self._inferred.shape(ref)
        terms: list[_Term] = []
        for each in taken:
            own = self._inferred.shape(each)
            if not (shape.is_known and own.is_known):
                return None
            places = np.broadcast_to(np.arange(own.elements or 0).reshape(own.known), shape.known)
            terms.append(self.of(each, int(places.reshape(-1)[place]), depth - 1))
        one, two = terms
        if one.ref and two.ref:
            return None
        return _Term(one.ref or two.ref, one.place + two.place, one.number + two.number)

    def _moved(self, ref: str, place: int) -> tuple[str, int] | None:
        """Which element of which input a node that moves elements puts there."""
        node = self._graph.nodes[parse_ref(ref)[0]]
        filled: list[Any] = []
        sources: list[tuple[str, int]] = []
        for each in map(canonical, node.data_inputs):
            value, shape = self._inferred.value(each), self._inferred.shape(each)
            if value is not None:
                filled.append(value.astype(np.int64))
            elif shape.is_known:
                count = shape.elements or 0
                filled.append((FIRST + len(sources) + np.arange(count)).reshape(shape.known))
                sources += [(each, at) for at in range(count)]
            else:
                return None
        try:
            found = int(np.asarray(registry.evaluate(node, filled)[0]).reshape(-1)[place]) - FIRST
        except (PocketgraphError, IndexError, ValueError):
            return None
        return sources[found] if 0 <= found < len(sources) else None
