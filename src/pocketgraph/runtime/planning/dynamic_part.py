"""One part of a graph that is planned when it runs, once for each shape it runs with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.functions import Library
from pocketgraph.runtime.engines.reference import Program
from pocketgraph.runtime.warm_start import Executable, directly

Array = np.ndarray[Any, Any]
Sizes = tuple[tuple[int, ...], ...]
Planned = tuple[Executable | None, Program | None]
"""What runs a part: one executable that does it all, or a program."""

MOST_KEPT = 64  # that one part keeps; the oldest go
ADMITTED_AT_ONCE = 8
"""New shapes that are planned at once; after as many without a return, a shape is planned when it comes twice."""
MOST_SEEN = 16 * MOST_KEPT  # shapes that came once; more are forgotten


class AdmissionPolicy:
    """Which shapes, or other keys, a part is planned for when they are new."""

    def __init__(self) -> None:
        self._once: set[object] = set()
        self._unreturned = 0

    def allows(self, key: object, *, always: bool = False) -> bool:
        """Whether to plan for a key that there is no plan for; ``always``: it is planned for at any rate."""
        if always or self._unreturned < ADMITTED_AT_ONCE:
            self._unreturned += 1
            return True
        if key in self._once:
            self._once.discard(key)
            self._unreturned = 0
            return True
        self._once.add(key)
        if len(self._once) > MOST_SEEN:
            self._once.clear()
        return False


class Planner(Protocol):
    """Whoever plans parts (see dynamic_parts.DynamicParts).

    Attributes:
        plan: plans a part: (the part, feeds with type and shape, fetches, key, whether by steps).
        from_cache: finds what an earlier process compiled for (key, arrays by name, fetches).
    """

    plan: Callable[[DynamicPart, Mapping[Endpoint, Any], tuple[Endpoint, ...], str, bool], Planned]
    from_cache: Callable[[str, Mapping[str, Array], Sequence[str]], Executable | None] | None


class Reordered:
    """An executable that takes its inputs in another order."""

    def __init__(self, executable: Executable, order: tuple[int, ...]) -> None:
        self.executable = executable
        self.order = order

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return self.executable.run([inputs[index] for index in self.order])

    def direct(self, order: Sequence[int]) -> Callable[[list[Array]], list[Array]]:
        return directly(self.executable, [order[index] for index in self.order])

    def close(self) -> None:
        self.executable.close()

    def describe(self) -> str:
        return self.executable.describe()


class DynamicPart:
    """A part as a call: the Run and the inputs' values in, the outputs' values out."""

    traces_itself = True
    is_pure = True

    def __init__(
        self,
        parts: Planner,
        made: Callable[[], Graph],
        members: tuple[str, ...],
        inputs: tuple[str, ...],
        outputs: tuple[Endpoint, ...],
        key: str,
    ) -> None:
        self.parts = parts
        self.members = members
        self.inputs = inputs
        self.outputs = outputs
        self.key = key
        self._ready: dict[Sizes, Planned] = {}
        self._quick: dict[Sizes, Callable[[Any], list[Array]]] = {}
        self._by_steps: dict[Sizes, Planned] = {}
        self._plain: Program | None = None
        self._admission = AdmissionPolicy()
        self._lock = threading.Lock()
        self._made = made

    @cached_property
    def graph(self) -> Graph:
        """Its nodes; seldom needed where an earlier process has compiled them."""
        return self._made()

    def __call__(self, run: Any, *arrays: Any) -> tuple[Any, ...]:
        try:
            sizes = tuple([array.shape for array in arrays])
        except AttributeError:
            return self._plainly().evaluate(arrays, run)
        is_plain = run.trace is None and run.ledger is None
        quick = self._quick.get(sizes)
        if quick is not None and is_plain:
            return tuple(quick(arrays))
        found = (self._ready if is_plain else self._by_steps).get(sizes)
        if found is None:
            found = self._decided(sizes, arrays, not is_plain)
        executable, program = found
        if executable is not None and is_plain:
            if self._ready.get(sizes) is found:
                self._quick[sizes] = directly(executable, range(len(arrays)))
            return tuple(executable.run(arrays))
        assert program is not None
        return program.evaluate(arrays, run)

    def _decided(self, sizes: Sizes, arrays: Sequence[Any], by_steps: bool) -> Planned:
        with self._lock:
            kept = self._by_steps if by_steps else self._ready
            if sizes in kept:
                return kept[sizes]
            if 0 in [size for shape in sizes for size in shape]:
                return None, self._plainly()
            if not self._admission.allows(sizes, always=by_steps):
                return None, self._plainly()
            if len(kept) >= MOST_KEPT:
                self._quick.pop(oldest := next(iter(kept)), None)
                kept.pop(oldest)
            kept[sizes] = self._planned(arrays, by_steps)
            return kept[sizes]

    def _planned(self, arrays: Sequence[Any], by_steps: bool) -> Planned:
        named = {f"{name}:0": array for name, array in zip(self.inputs, arrays, strict=True)}
        if self.key and not by_steps and self.parts.from_cache is not None and all(map(_is_plain, arrays)):
            found = self.parts.from_cache(self.key, named, [str(endpoint) for endpoint in self.outputs])
            if found is not None:
                return found, None
        feeds = {}
        for name, array in zip(self.inputs, arrays, strict=True):
            try:
                feeds[Endpoint(name, 0)] = (DType.of_numpy(array.dtype), array.shape)
            except GraphError:
                return None, self._plainly()
        return self.parts.plan(self, feeds, self.outputs, "" if by_steps else self.key, by_steps)

    def _plainly(self) -> Program:
        """The part on the reference engine, whatever the shapes."""
        if self._plain is None:
            feeds = [Endpoint(name, 0) for name in self.inputs]
            self._plain = Program(self.graph, feeds, self.outputs, library=Library(self.graph))
        return self._plain


def _is_plain(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "fiub"
