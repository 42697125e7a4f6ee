"""Dynamic parts keyed by values: sizes, orders or axes from outside are taken as if they were constants.

A decoder's ``Tensordot`` takes the shape it reshapes to, and the order of its axes, from nodes that count; a part that
knew only that three numbers come would know no shape behind them, and plan itself again in ever smaller parts.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from pocketgraph.graph import Graph, const
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.planning.dynamic_part import MOST_KEPT, AdmissionPolicy, DynamicPart

SIZED = {
    "Reshape": 1, "Transpose": 1, "Tile": 1, "BroadcastTo": 1, "Fill": 0, "ExpandDims": 1, "Sum": 1, "Mean": 1,
    "Max": 1, "Min": 1, "Prod": 1, "All": 1, "Any": 1,
    "Conv2DBackpropInput": 0, "Conv3DBackpropInputV2": 0, "ResizeBilinear": 1, "ResizeNearestNeighbor": 1,
    "ResizeBicubic": 1, "ResizeArea": 1,
}  # fmt: skip
"""The input of an op that decides of shapes, and not of values."""
MOST_NUMBERS = 8  # of one such input

Values = tuple[tuple[int, ...], ...]


def sized_inputs(plan: Plan, members: Collection[str], inputs: Sequence[Endpoint]) -> tuple[int, ...]:
    """The positions of the inputs that decide of shapes only."""
    found = []
    for position, endpoint in enumerate(inputs):
        takers = [plan.items[name] for name in plan.taken_from(endpoint.node).get(endpoint, ()) if name in members]
        if takers and all(
            item.node.op in SIZED and [p for p, e in enumerate(item.data) if e == endpoint] == [SIZED[item.node.op]]
            for item in takers
        ):
            found.append(position)
    return tuple(found)


class ValueKeyedPart:
    """A part as a call: the Run and the inputs' values in, the outputs' values out.

    Args:
        part: the part that takes all its inputs as they come.
        sized: which of them decide of shapes only; at least one.
    """

    traces_itself = True
    is_pure = True

    def __init__(self, part: DynamicPart, sized: tuple[int, ...]) -> None:
        self.part = part
        self.members = part.members
        self._sized = sized
        self._rest = tuple(position for position in range(len(part.inputs)) if position not in sized)
        self._parts: dict[Values, DynamicPart] = {}
        self._admission = AdmissionPolicy()
        self._lock = threading.Lock()

    def __call__(self, run: Any, *arrays: Any) -> tuple[Any, ...]:
        try:
            values = tuple([tuple(arrays[position].ravel().tolist()) for position in self._sized])
        except AttributeError:
            return self.part(run, *arrays)
        part = self._parts.get(values)
        if part is None:
            part = self._decided(values, arrays)
            if part is None:
                return self.part(run, *arrays)
        return part(run, *[arrays[position] for position in self._rest])

    def _decided(self, values: Values, arrays: Sequence[Any]) -> DynamicPart | None:
        """The part for these values; None where that is not worth it."""
        if any(arrays[p].size > MOST_NUMBERS or arrays[p].ndim > 1 or arrays[p].dtype.kind != "i" for p in self._sized):
            return None
        with self._lock:
            if values in self._parts:
                return self._parts[values]
            if not self._admission.allows(values):
                return None
            if len(self._parts) >= MOST_KEPT:
                self._parts.pop(next(iter(self._parts)))
            self._parts[values] = self._made(arrays)
            return self._parts[values]

    def _made(self, arrays: Sequence[Any]) -> DynamicPart:
        part = self.part
        known = {part.inputs[position]: arrays[position].copy() for position in self._sized}
        said = " ".join(f"{name}={value.dtype}{value.tolist()}" for name, value in known.items())
        return DynamicPart(
            part.parts, partial(_with_values, part, known), part.members,
            tuple(part.inputs[position] for position in self._rest), part.outputs,
            f"{part.key} {said}" if part.key else "",
        )  # fmt: skip


def _with_values(part: DynamicPart, known: dict[str, Any]) -> Graph:
    """The part's nodes with these inputs as constants."""
    return part.graph.replace(
        [const(node.name, known[node.name]) if node.name in known else node for node in part.graph]
    )
