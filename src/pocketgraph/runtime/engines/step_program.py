"""The reference engine: NumPy kernels node by node, in a schedule that is worked out once.

It is exact and covers every op that has a kernel. TF1 control flow follows TensorFlow's rules for frames and dead
tensors; see ``region`` for what is executed and ``builder`` for how it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from sys import getrefcount
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels.registry import AT_END
from pocketgraph.runtime.engines.compilation_units import OF_TRAINED_LAYERS, DynamicPlanner, Functions, PartCall, Plan
from pocketgraph.runtime.engines.frames import ROOT, frames_of, has_loops
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.engines.region import take
from pocketgraph.runtime.engines.step_builder import Builder
from pocketgraph.runtime.engines.steps import DEAD, Run

__all__ = ["PartCall", "Run", "StepProgram"]

OWN_TYPES = {kind: kind for kind in map(np.dtype, ("float32", "float64", "int32", "int64", "bool", "uint8", "int8"))}
"""NumPy's own object for each type; an array that was pickled has an equal one, which quick calls do not know."""


class StepProgram:
    """A schedule for one set of feeds, fetches and targets.

    Attributes:
        feeds: the tensors to be given, in the order of ``run``'s values.
        fetches: the tensors that come back, in order; one may appear twice.
        dynamic_parts: the parts that are planned when they run.
    """

    def __init__(
        self,
        graph: Graph,
        feeds: Sequence[Endpoint],
        fetches: Sequence[Endpoint],
        targets: Sequence[str] = (),
        *,
        library: Functions,
        items: Mapping[str, Item] | None = None,
        parts: Collection[PartCall] = (),
        dynamic: DynamicPlanner | None = None,
    ) -> None:
        """Compiles the needed part of ``graph``; nothing is computed and no constant is read yet.

        Args:
            feeds: tensors that the caller gives.
            fetches: tensors that the caller takes.
            targets: nodes to run without taking anything.
            library: runs the graph's functions.
            items: the needed nodes, when the caller knows them already.
            parts: parts that another engine runs.
            dynamic: who plans parts when they run.

        Raises:
            RunError: a cycle, a wrong loop, an unfed placeholder, a fetch from inside a loop.
        """
        self.feeds = tuple(feeds)
        self.fetches = tuple(fetches)
        fed = frozenset(feeds)
        if items is None:
            items = needed(graph, fed, fetches, targets)
        frames = frames_of(items, fed) if has_loops(items) else dict.fromkeys(items, ROOT)
        for name in [*(e.node for e in fetches if e not in fed), *targets]:
            if name in frames and frames[name] is not ROOT and frames[name].depth:
                raise RunError(
                    f"'{name}' is inside of the loop '{frames[name].name}' and has many values in one run",
                    hint="fetch what leaves the loop (an Exit node)",
                )
        by_member = {name: part for part in parts for name in part.members}
        plan = Plan(items, fed, frames, by_member, library, dynamic)
        decided = dynamic.decided(plan) if dynamic is not None else None
        if decided is not None:
            plan.finds_dynamic = False
            plan.parts.update((name, part) for part in decided for name in part.members)
        looks_up = dynamic is not None and any(item.node.op.startswith("SparseSegment") for item in items.values())
        if looks_up and plan.uses("fused_lookups"):
            from pocketgraph.runtime.engines.fused_lookups import fused_lookups

            for fused in fused_lookups(plan, self.fetches, partial(_apart, graph, library)):
                plan.parts.update(dict.fromkeys(fused.members, fused))
        if dynamic is not None and any(item.node.op.endswith(OF_TRAINED_LAYERS) for item in items.values()):
            from pocketgraph.runtime.engines.trained_layers import trained_layers

            for fused in trained_layers(plan, self.fetches, partial(_apart, graph, library)):
                plan.parts.update(dict.fromkeys(fused.members, fused))
        builder = Builder(plan, ROOT)
        self._feed_slots = tuple(builder.bind(endpoint) for endpoint in self.feeds)
        builder.build(list(items), [e for e in fetches if e not in fed])
        self._fetch_slots = tuple(builder.materialized(endpoint) for endpoint in self.fetches)
        builder.kept.update(self._fetch_slots)
        self._steps = builder.parted().head
        self._region = builder.region()
        found = {id(part): part for part in plan.parts.values() if part.is_dynamic}
        self.dynamic_parts = tuple(found.values())

    def __len__(self) -> int:
        return len(self._steps)

    def run(self, values: Sequence[np.ndarray[Any, Any]], run: Run) -> list[np.ndarray[Any, Any]]:
        """Runs once.

        Args:
            values: one array for each of ``feeds``; they are not changed and not kept.
            run: the state to work on.

        Returns:
            One array for each of ``fetches``, owned by the caller.

        Raises:
            RunError: a kernel refused its inputs, a fetch is dead, or a loop did not end.
        """
        shielded = []
        for value in values:
            kind = OWN_TYPES.get(value.dtype, value.dtype)
            view = value.view() if kind is value.dtype else value.view(kind)
            view.flags.writeable = False
            shielded.append(view)
        try:
            with np.errstate(all="ignore"):
                found = self.evaluate(shielded, run)
        finally:
            for call in run.step.get(AT_END, ()):
                call()
        results: list[np.ndarray[Any, Any]] = []
        taken: set[int] = set()
        for index, value in enumerate(found):
            array = value if type(value) is np.ndarray else self._fetched(index, value)
            flags = array.flags
            if not flags.writeable or id(value) in taken or not (flags.owndata or _is_sole_view(array)):
                array = array.copy()
            taken.add(id(value))
            results.append(array)
        return results

    def evaluate(self, values: Sequence[Any], run: Run) -> tuple[Any, ...]:
        """Like ``run`` for use inside of the engine: values of any kind go in and come out as they are."""
        slots = self._region.fresh(run)
        for slot, value in zip(self._feed_slots, values, strict=True):
            slots[slot] = value
        take(self._steps, slots, run)
        return tuple([slots[slot] for slot in self._fetch_slots])

    def _fetched(self, index: int, value: Any) -> np.ndarray[Any, Any]:
        """A fetch that is not simply an array."""
        endpoint = self.fetches[index]
        if value is DEAD:
            raise RunError(
                f"Retval[{index}] does not have value: '{endpoint}' is on a branch that was not taken",
                hint="fetch the Merge after the branches, or feed the predicate that takes this one",
            )
        if not isinstance(value, np.generic):
            from pocketgraph.kernels.state.variables import Variable  # which few graphs have

            if isinstance(value, Variable) and not value.resource:
                value = value.read()
        if isinstance(value, (np.ndarray, np.generic)):
            return np.asarray(value)
        raise RunError(f"'{endpoint}' is a {type(value).__name__} and cannot be fetched", hint="fetch what reads it")


def _is_sole_view(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array is all of another one that nobody else knows: handing out its memory needs no copy."""
    return (
        array.flags.c_contiguous
        and type(array.base) is np.ndarray
        and array.base.nbytes == array.nbytes
        and array.base.flags.owndata
        and array.base.flags.writeable
        and _owners(array) == _ONE_VIEW
    )


def _owners(view: np.ndarray[Any, Any]) -> int:
    return getrefcount(view.base)


_ONE_VIEW = _owners(np.empty(2).reshape(2, 1))
"""What Python counts where only a view knows an array."""


def _apart(
    graph: Graph, library: Functions, items: Mapping[str, Item], inputs: Sequence[Endpoint], outputs: Sequence[Endpoint]
) -> Callable[..., tuple[Any, ...]]:
    """What runs these nodes one by one; they are compiled when it is first called."""
    programs: list[StepProgram] = []

    def apart(run: Run, *values: Any) -> tuple[Any, ...]:
        if not programs:
            programs.append(StepProgram(graph, inputs, outputs, library=library, items=items))
        return programs[0].evaluate(values, run)

    return apart
