"""A compiled part as a step of the reference engine's program, and where its time goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.runtime.op_weights import HEAVY
from pocketgraph.runtime.profile import NodeTiming, StepTrace
from pocketgraph.runtime.tensor_names import before_rounds
from pocketgraph.runtime.warm_start import Executable, directly

Array = np.ndarray[Any, Any]
OFTEN = 8  # calls after which the quicker way is made ready


class Share(NamedTuple):
    """One operation's part of the time, and what it makes."""

    name: str
    op: str
    part: float
    output_bytes: int
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


class SegmentCall:
    """Calls an executable.

    Attributes:
        executable: what is called.
        ops: the op type of each node inside, by name.
        name: stands for the part where no better is known.
    """

    def __init__(self, executable: Executable, ops: Mapping[str, str], name: str) -> None:
        self.executable = executable
        self.ops = ops
        self.name = name
        self._shares: list[Share] | None = None
        self._how = ""
        self._lock = threading.Lock()
        self._calls = 0
        self._seen: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        self._quick: Callable[[Any], list[Array]] | None = None

    @property
    def place(self) -> str:
        """What to call the part in messages: the graph's nodes that it begins and ends with."""
        if not self.ops:
            return self.name
        first, *_, last = (before_rounds(name)[0] for name in (*self.ops, *self.ops))
        return f"node '{first}'" if len(self.ops) == 1 else f"the LiteRT part from '{first}' to '{last}'"

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        quick = self._quick
        if quick is not None and [(array.shape, array.dtype) for array in arrays] == self._seen:
            return tuple(quick(arrays))
        found = tuple(self.executable.run(arrays))
        if quick is None:
            self._calls += 1
            if self._calls == OFTEN:  # it is in a loop; arrays like these have been found right
                self._seen = [(array.shape, array.dtype) for array in arrays]
                self._quick = directly(self.executable, range(len(arrays)))
        return found

    def note_times(self, trace: StepTrace, arguments: Sequence[Array], outputs: Any, began: int, ended: int) -> None:
        """Notes one call (``perf_counter_ns``), its time shared out to the nodes inside."""
        position, whole = trace.since_start(began), (ended - began) / 1000
        with self._lock:
            if self._shares is None:
                self._shares = self._measured(arguments)
                trace.leave_out(time.perf_counter_ns() - ended)
        if not self._shares:
            trace.add(self.name, "LiteRT", began, ended, outputs, "litert")
            return
        trace.note(self._how)
        for share in self._shares:
            took = share.part * whole
            trace.nodes.append(
                NodeTiming(share.name, share.op, position, took, share.output_bytes, "litert", share.outputs)
            )
            position += took

    def _measured(self, arguments: Sequence[Array]) -> list[Share]:
        """The nodes' shares; none when the engine does not tell. A node of several operations has one, at the first."""
        measure: Any = getattr(self.executable, "op_times", None)
        found = measure(arguments) if measure is not None else None
        program: Any = getattr(self.executable, "program", None)
        if found is None or program is None:
            return []
        times, self._how = found
        total = sum(us for _, _, us in times) or 1.0
        shares: dict[str, Share] = {}
        for place, ((nodes, code, us), operation) in enumerate(zip(times, program.operations, strict=True)):
            name = next((n for n in nodes if self.ops.get(n) in HEAVY), nodes[-1] if nodes else "")
            made = [(value.dtype, tuple(value.shape), value.size) for value in operation.outputs]
            outputs = tuple((dtype.numpy.name, shape) for dtype, shape, _ in made)
            size = sum(count * dtype.size for dtype, _, count in made)
            key = name or f"{self.name}/{code}_{place}"  # what no node asked for: layouts, types
            before = shares[key].part if key in shares else 0.0
            shares[key] = Share(key, self.ops.get(name, code), before + us / total, size, outputs)
        return list(shares.values())
