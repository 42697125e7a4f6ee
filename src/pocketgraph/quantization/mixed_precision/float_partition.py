"""Which operations without weights compute faster in float, the conversions before and after them counted in.

Layers gain by eight bits, and so does moving data. But LiteRT has products of two tensors, softmax, squares and others
on codes in plain kernels only, several times slower than XNNPACK's in float, and some not at all. What lies between
two such operations is best left in float too, when converting it costs more than codes spare.

It is a minimum cut: operations are nodes, the time in codes or in float ties them to either end, and the time of
converting a tensor ties those that make and read it to each other. Measured on x86 with one thread; what matters are
the ratios, and codes are taken where both would be about even.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.operator_rules import has_weights
from pocketgraph.quantization.core.quantization_state import QuantizationState

EVERYWHERE = float("inf")


def faster_in_float(program: Program, coded: Collection[Operation], *, has_float_ends: bool = True) -> list[Operation]:
    """The operations that had better stay in float, in order.

    Args:
        program: the float program.
        coded: the operations that could compute with codes; layers among them do in any case.
        has_float_ends: whether its inputs and outputs stay in float. Where they are codes, as for a device that has
            little else, only conversions count: what lies between operations that LiteRT has in float alone stays so.
    """
    ends = _MinimumCut.FLOAT if has_float_ends else _MinimumCut.CODES
    chosen = set(coded)
    free = [operation for operation in program.operations if operation in chosen and not has_weights(operation)]
    if not free:
        return []
    cut = _MinimumCut()
    place = {operation: cut.node() for operation in program.operations}
    for operation in program.operations:
        if operation not in chosen:
            cut.tie(place[operation], _MinimumCut.FLOAT, EVERYWHERE)
        elif has_weights(operation):
            cut.tie(_MinimumCut.CODES, place[operation], EVERYWHERE)
        elif has_float_ends:
            in_codes = step_limits.FLOAT_ADVANTAGE_SHARE * step_limits.nanoseconds(operation, in_codes=True)
            cut.tie(place[operation], _MinimumCut.FLOAT, in_codes)
            cut.tie(_MinimumCut.CODES, place[operation], step_limits.nanoseconds(operation, in_codes=False))
    readers: dict[Value, list[int]] = {}
    for operation in program.operations:
        for value in dict.fromkeys(operation.inputs):
            if value is not None and value.constant is None and value.dtype is FLOAT:
                readers.setdefault(value, []).append(place[operation])
    for value in program.outputs:
        readers.setdefault(value, []).append(ends)
    makers = {value: place[operation] for value, operation in program.producers().items()}
    for value, reading in readers.items():
        maker, time = makers.get(value, ends), step_limits.conversion_nanoseconds(value.size)
        if value.constant is None and value.dtype is FLOAT:
            as_float, as_codes = cut.node(), cut.node()
            cut.tie(maker, as_float, time)
            cut.tie(as_codes, maker, time)
            for reader in reading:
                cut.tie(as_float, reader, EVERYWHERE)
                cut.tie(reader, as_codes, EVERYWHERE)
    with_codes = cut.beside_codes()
    return [operation for operation in free if place[operation] not in with_codes]


@dataclass
class _Edge:
    to: int
    room: float


class _MinimumCut:
    """A network of nodes tied by capacities, and its minimum cut (Edmonds and Karp's augmenting paths).

    An edge from a to b is paid for when a is on the side of codes and b on that of floats.
    """

    CODES, FLOAT = 0, 1

    def __init__(self) -> None:
        self.edges: list[_Edge] = []
        self.leaving: list[list[int]] = [[], []]

    def node(self) -> int:
        self.leaving.append([])
        return len(self.leaving) - 1

    def tie(self, start: int, end: int, room: float) -> None:
        for one, other, capacity in ((start, end, room), (end, start, 0.0)):
            self.leaving[one].append(len(self.edges))
            self.edges.append(_Edge(other, capacity))

    def beside_codes(self) -> set[int]:
        """The nodes on the side of codes, in a cut of least capacity with as many there as can be."""
        while True:
            before = self._reached()
            if self.FLOAT not in before:
                break
            path, at = [], self.FLOAT
            while at != self.CODES:
                path.append(before[at])
                at = self.edges[before[at] ^ 1].to
            room = min(self.edges[edge].room for edge in path)
            for edge in path:
                self.edges[edge].room -= room
                self.edges[edge ^ 1].room += room
        return set(before) | {self.CODES}

    def _reached(self) -> dict[int, int]:
        """The nodes that can be reached from CODES, and by which edge."""
        before: dict[int, int] = {self.CODES: -1}
        waiting = deque([self.CODES])
        while waiting and self.FLOAT not in before:
            node = waiting.popleft()
            for edge in self.leaving[node]:
                to = self.edges[edge].to
                if self.edges[edge].room > 1e-9 and to not in before:
                    before[to] = edge
                    waiting.append(to)
        return before


def apply(state: QuantizationState) -> bool:
    """The step."""
    return state.stay_in_float(faster_in_float(state.program, state.coded, has_float_ends=state.options.io == "float"))
