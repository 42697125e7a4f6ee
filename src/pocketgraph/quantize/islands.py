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
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantize.operators import has_weights

CONVERSION = (60.0, 0.05)  # nanoseconds, and for each element
IN_FLOAT = (40.0, 0.055)
IN_CODES = (38.0, 0.045)
EVEN = 0.85
"""Times that the time in float must be below that in codes for the difference to count."""
EVERYWHERE = float("inf")
FLOATS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("ELU", "EXP", "GELU", "LOG", "LOGISTIC", "TANH"), (50.0, 0.11)),
    "LOG_SOFTMAX": (200.0, 1.1),
    "SOFTMAX": (100.0, 0.165),
}
"""Nanoseconds of an operation in float, and of each element of its result, where they are others than IN_FLOAT."""
CODES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("ADD", "SUB"), (40.0, 0.085)),
    **dict.fromkeys(("EXP", "GELU", "LOG", "MUL"), (50.0, 0.17)),
    "ABS": (600.0, 2.3),
    "AVERAGE_POOL_2D": (120.0, 0.12),
    "LOG_SOFTMAX": (300.0, 0.85),
    "PRELU": (800.0, 3.1),
    "SOFTMAX": (500.0, 1.7),
    "SQUARED_DIFFERENCE": (1400.0, 5.6),
}
"""The same in codes."""
BEYOND_CACHE = 1 << 17  # elements, from which floats of two tensors and their result are fetched from afar
OF_TWO, FROM_AFAR = ("ADD", "DIV", "MUL", "SUB"), 0.1  # nanoseconds of each element then; codes are a quarter as large
SOFTMAX_ROW = {False: 14.0, True: 1.0}
"""Nanoseconds more of each row of a softmax in float, and in codes, whose exponentials are looked up."""
PRODUCTS = ("BATCH_MATMUL",)
EACH_PRODUCT = {False: 0.01, True: 0.11}  # nanoseconds of each multiplication, and in codes


def faster_in_float(program: Program, coded: Collection[Operation]) -> list[Operation]:
    """The operations that had better stay in float, in order.

    Args:
        program: the float program, whose inputs and outputs stay in float.
        coded: the operations that could compute with codes; layers among them do in any case.
    """
    chosen = set(coded)
    free = [operation for operation in program.operations if operation in chosen and not has_weights(operation)]
    if not free:
        return []
    cut = _Cut()
    place = {operation: cut.node() for operation in program.operations}
    for operation in program.operations:
        if operation not in chosen:
            cut.tie(place[operation], _Cut.FLOAT, EVERYWHERE)
        elif has_weights(operation):
            cut.tie(_Cut.CODES, place[operation], EVERYWHERE)
        else:
            cut.tie(place[operation], _Cut.FLOAT, EVEN * _time(operation, in_codes=True))
            cut.tie(_Cut.CODES, place[operation], _time(operation, in_codes=False))
    readers: dict[Value, list[int]] = {}
    for operation in program.operations:
        for value in dict.fromkeys(operation.inputs):
            if value is not None and value.constant is None and value.dtype is FLOAT:
                readers.setdefault(value, []).append(place[operation])
    for value in program.outputs:
        readers.setdefault(value, []).append(_Cut.FLOAT)
    makers = {value: place[operation] for value, operation in program.producers().items()}
    for value, reading in readers.items():
        maker, time = makers.get(value, _Cut.FLOAT), CONVERSION[0] + CONVERSION[1] * value.size
        if value.constant is None and value.dtype is FLOAT:
            as_float, as_codes = cut.node(), cut.node()
            cut.tie(maker, as_float, time)
            cut.tie(as_codes, maker, time)
            for reader in reading:
                cut.tie(as_float, reader, EVERYWHERE)
                cut.tie(reader, as_codes, EVERYWHERE)
    with_codes = cut.beside_codes()
    return [operation for operation in free if place[operation] not in with_codes]


def _time(operation: Operation, *, in_codes: bool) -> float:
    """Nanoseconds, about."""
    result = operation.outputs[0]
    size = sum(value.size for value in operation.outputs)
    if operation.code in PRODUCTS and operation.inputs[0] is not None:
        inner = operation.inputs[0].shape[-2 if operation.options.get("adj_x") else -1]
        return 300.0 + EACH_PRODUCT[in_codes] * result.size * inner
    if operation.inputs and operation.code in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        size = operation.inputs[0].size if operation.inputs[0] is not None else size
    start, each = (CODES if in_codes else FLOATS).get(operation.code, IN_CODES if in_codes else IN_FLOAT)
    if operation.code in OF_TWO and not in_codes and size >= BEYOND_CACHE:
        moving = [value for value in operation.inputs if value is not None and value.constant is None]
        each = FROM_AFAR if len(moving) > 1 else each
    rows = result.size // max(result.shape[-1], 1) if operation.code == "SOFTMAX" and result.shape else 0
    return start + each * size + SOFTMAX_ROW[in_codes] * rows


@dataclass
class _Edge:
    to: int
    room: float


class _Cut:
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
