"""A compiled part: what it takes and gives, how it is called, how a later process finds it, and where its time goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import HEAVY
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.cost_model import DIRECT_CALLS_AFTER
from pocketgraph.runtime.engines.compilation_units import PartCall
from pocketgraph.runtime.tensor_names import before_rounds

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Executable
    from pocketgraph.runtime.part_engines.part_engine import OperationTime
    from pocketgraph.runtime.profiling.profile import OperationShare, StepTrace

Found: TypeAlias = "tuple[str, list[tuple[str, str, tuple[int, ...]]], list[str]]"
"""The key, inputs (name, type, shape) and outputs by which a later process finds a part."""


class CompiledPart:
    """A part that LiteRT, or another engine in its place, runs as a call.

    Attributes:
        ops: the op type of each node inside, by name.
        inputs, outputs: what the executable takes and gives, in its order.
        executable: runs it.
        is_whole: whether it is everything between the feeds and the fetches.
        found_by: how a later process finds it; None: it does not.
        name: stands for the part where no better is known.
    """

    def __init__(
        self,
        ops: Mapping[str, str],
        inputs: tuple[Endpoint, ...],
        outputs: tuple[Endpoint, ...],
        executable: Executable,
        is_whole: bool = False,
        found_by: Found | None = None,
    ) -> None:
        self.ops = ops
        self.inputs = inputs
        self.outputs = outputs
        self.executable = executable
        self.is_whole = is_whole
        self.found_by = found_by
        self.name = "litert part"
        self._shares: list[OperationShare] | None = None
        self._how = ""
        self._lock = threading.Lock()
        self._calls = 0
        self._seen: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        self._quick: Callable[[Any], list[Array]] | None = None

    def as_step(self, index: int, members: Iterable[str] | None = None) -> PartCall:
        """It as a step of the reference engine's program.

        Args:
            index: its place among the parts.
            members: the nodes that stand for it in the program's graph; by default those inside.
        """
        self.name = f"litert part {index + 1}"
        inside = frozenset(self.ops if members is None else members)
        return PartCall(Node(self.name, "LiteRT"), inside, self.inputs, self.outputs, self)

    @property
    def runs_on(self) -> str:
        """The name of the engine that runs it now."""
        return getattr(self.executable, "engine", "").partition(" ")[0] or "litert"

    @property
    def place(self) -> str:
        """What to call the part in messages: the graph's nodes that it begins and ends with."""
        if not self.ops:
            return self.name
        names = list(self.ops)
        first, last = (before_rounds(name)[0] for name in (names[0], names[-1]))
        return f"node '{first}'" if len(self.ops) == 1 else f"the LiteRT part from '{first}' to '{last}'"

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        quick = self._quick
        if quick is not None and [(array.shape, array.dtype) for array in arrays] == self._seen:
            return tuple(quick(arrays))
        found = tuple(self.executable.run(arrays))
        if quick is None:
            self._calls += 1
            if self._calls == DIRECT_CALLS_AFTER:  # it is in a loop; arrays like these have been found right
                self._seen = [(array.shape, array.dtype) for array in arrays]
                self._quick = self.executable.direct(range(len(arrays)))
        return found

    def note_times(self, trace: StepTrace, arguments: Sequence[Array], outputs: Any, began: int, ended: int) -> None:
        """Notes one call (``perf_counter_ns``), its time shared out to the nodes inside."""
        with self._lock:
            if self._shares is None:
                self._shares = self._measured(arguments)
                measuring = time.perf_counter_ns() - ended
                trace.leave_out(measuring)
                began, ended = began + measuring, ended + measuring
        runs_on = self.runs_on
        if not self._shares:
            trace.add(self.name, "LiteRT" if runs_on == "litert" else runs_on, began, ended, outputs, runs_on)
            return
        trace.note(self._how)
        trace.add_shares(self._shares, trace.since_start(began), (ended - began) / 1000, runs_on)

    def _measured(self, arguments: Sequence[Array]) -> list[OperationShare]:
        """The nodes' shares; none when the engine does not tell. A node of several operations has one, at the first."""
        if self.runs_on != "litert":
            return self._shares_by_engine(arguments)
        measure: Any = getattr(self.executable, "op_times", None)
        found = measure(arguments) if measure is not None else None
        program: Any = getattr(self.executable, "program", None)
        if found is None or program is None:
            return []
        times, self._how = found
        from pocketgraph.runtime.profiling.profile import OperationShare

        total = sum(us for _, _, us in times) or 1.0
        shares: dict[str, OperationShare] = {}
        for place, ((nodes, code, us), operation) in enumerate(zip(times, program.operations, strict=True)):
            name = next((n for n in nodes if self.ops.get(n) in HEAVY), nodes[-1] if nodes else "")
            made = [(value.dtype, tuple(value.shape), value.size) for value in operation.outputs]
            outputs = tuple((dtype.numpy.name, shape) for dtype, shape, _ in made)
            size = sum(count * dtype.size for dtype, _, count in made)
            key = name or f"{self.name}/{code}_{place}"  # what no node asked for: layouts, types
            before = shares[key].part if key in shares else 0.0
            shares[key] = OperationShare(key, self.ops.get(name, code), before + us / total, size, outputs)
        return list(shares.values())

    def _shares_by_engine(self, arguments: Sequence[Array]) -> list[OperationShare]:
        """The shares by another engine's own profile; none where it does not tell."""
        times = _operation_times(self.executable, arguments)
        self._how = f"inside of what {self.executable.engine} runs the times are its own profile, scaled to the part's"
        from pocketgraph.runtime.profiling.profile import OperationShare

        total = sum(each.microseconds for each in times) or 1.0
        shares: dict[str, OperationShare] = {}
        for place, each in enumerate(times):
            key = each.name or f"{self.name}/{each.op}_{place}"
            before = shares[key].part if key in shares else 0.0
            shares[key] = OperationShare(key, self.ops.get(key, each.op), before + each.microseconds / total)
        return list(shares.values())


def _operation_times(executable: Executable, inputs: Sequence[Array]) -> list[OperationTime]:
    """What the engine of a part tells of its operations; nothing where it does not, or the part is not in the cache."""
    from pocketgraph.litert import cache
    from pocketgraph.runtime.part_engines.available_engines import find
    from pocketgraph.runtime.part_engines.part_engine import OfferedPart

    entry = cache.find(*executable.kept_as) if executable.kept_as is not None else None
    if entry is None:
        return []
    given = [inputs[index] for index in entry.about["fed"]]
    try:
        engine = find(executable.engine.partition(" ")[0])
        return engine.profile(OfferedPart(entry), executable.threads, given) or []
    except (PocketgraphError, RuntimeError, ValueError):
        return []
