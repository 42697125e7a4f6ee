"""Dynamic parts: planned when they run, once for each shape they run with, or for each value of what decides on shapes.

A part knows its nodes when the graph is planned, and its inputs' shapes only in the run. Called with shapes not seen
before it is planned like any graph, and the plan is kept. A part that takes sizes, orders or axes from outside
(``ValueKeyedPart``: a decoder's ``Tensordot`` takes the shape it reshapes to from nodes that count) becomes one dynamic
part for each value of these, as if they were constants; a part that knew only that three numbers come would know no
shape behind them, and plan itself again in ever smaller parts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Graph, const
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.step_program import StepProgram
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan

if TYPE_CHECKING:
    from pocketgraph.runtime.planning.sizes.open_sizes import SizedCalls

Sizes = tuple[tuple[int, ...], ...]
Values = tuple[tuple[int, ...], ...]
PartPlanner: TypeAlias = "Callable[[DynamicPart, dict[Endpoint, Any], bool], ExecutionPlan | None]"
"""Plans a part for its inputs' types and shapes; with each node's times wanted or not. None: that is not worth it."""

MOST_KEPT = 64  # plans that one part keeps; the oldest go
ADMITTED_AT_ONCE = 8
"""New shapes that are planned at once; after as many without a return, a shape is planned when it comes twice."""
MOST_SEEN = 16 * MOST_KEPT  # shapes that came once; more are forgotten

SIZED = {
    **dict.fromkeys(ops_with("reduction", "resize"), 1), "Reshape": 1, "Transpose": 1, "Tile": 1, "BroadcastTo": 1,
    "ExpandDims": 1, "Fill": 0, "Conv2DBackpropInput": 0, "Conv3DBackpropInputV2": 0,
}  # fmt: skip
"""The input of an op that decides of shapes, and not of values."""
MOST_NUMBERS = 8  # of one such input


class AdmissionPolicy:
    """Which shapes, or other keys, a part is planned for when they are new."""

    def __init__(self) -> None:
        self._once: set[object] = set()
        self._unreturned = 0

    def allows(self, key: object) -> bool:
        """Whether to plan for a key that there is no plan for."""
        if self._unreturned < ADMITTED_AT_ONCE:
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


class DynamicPart:
    """A part as a call: the Run and the inputs' values in, the outputs' values out.

    Args:
        plan: plans it.
        make_graph: its nodes, with placeholders for ``inputs``.
        members: the names of its nodes.
        inputs: the placeholders.
        outputs: what it gives.
        key: names it across processes; "" when nothing may be kept.

    Attributes:
        sized: what is known of its calls, which differ in shapes alone; None before there is a plan.
    """

    traces_itself = True
    is_pure = True

    def __init__(
        self,
        plan: PartPlanner,
        make_graph: Callable[[], Graph],
        members: tuple[str, ...],
        inputs: tuple[str, ...],
        outputs: tuple[Endpoint, ...],
        key: str,
    ) -> None:
        self.plan = plan
        self.make_graph = make_graph
        self.members = members
        self.inputs = inputs
        self.outputs = outputs
        self.key = key
        self.sized: SizedCalls | None = None
        self.plans: dict[Sizes, ExecutionPlan] = {}
        self._quick: dict[Sizes, Callable[[Any], list[Array]]] = {}
        self._by_steps: dict[Sizes, ExecutionPlan] = {}
        self._admission = AdmissionPolicy()
        self._lock = threading.Lock()

    @cached_property
    def graph(self) -> Graph:
        """Its nodes; seldom needed where an earlier process has compiled them."""
        return self.make_graph()

    @cached_property
    def unplanned(self) -> ExecutionPlan:
        """The part on the reference engine, whatever the shapes."""
        feeds = [Endpoint(name, 0) for name in self.inputs]
        return ExecutionPlan(StepProgram(self.graph, feeds, self.outputs, library=FunctionLibrary(self.graph)))

    def __call__(self, run: Any, *arrays: Any) -> tuple[Any, ...]:
        try:
            sizes = tuple([array.shape for array in arrays])
        except AttributeError:
            return self._stepped(self.unplanned, run, arrays)
        is_plain = run.trace is None and run.ledger is None
        if not is_plain:
            return self._stepped(self._by_steps.get(sizes) or self._decided(sizes, arrays, True), run, arrays)
        quick = self._quick.get(sizes)
        if quick is not None:
            return tuple(quick(arrays))
        found = self.plans.get(sizes) or self._decided(sizes, arrays, False)
        if found.ran is not None:
            began = time.thread_time()
            results = self._ran(found, run, arrays)
            found.ran(time.thread_time() - began)
            return results
        if found.whole is None:
            return self._stepped(found, run, arrays)
        if self.plans.get(sizes) is found:
            self._quick[sizes] = found.directly()
        return self._ran(found, run, arrays)

    @classmethod
    def _ran(cls, plan: ExecutionPlan, run: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
        if plan.whole is None:
            return cls._stepped(plan, run, arrays)
        return tuple(plan.whole.run([arrays[index] for index in plan.whole_inputs]))

    @staticmethod
    def _stepped(plan: ExecutionPlan, run: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
        assert plan.program is not None
        return plan.program.evaluate(arrays, run)

    def _decided(self, sizes: Sizes, arrays: Sequence[Any], by_steps: bool) -> ExecutionPlan:
        with self._lock:
            kept = self._by_steps if by_steps else self.plans
            if sizes in kept:
                return kept[sizes]
            if 0 in [size for shape in sizes for size in shape]:
                return self.unplanned
            found = self._planned(arrays, by_steps)
            if found is None or found.once_with is not None:
                return found or self.unplanned
            if len(kept) >= MOST_KEPT:
                self._quick.pop(oldest := next(iter(kept)), None)
                kept.pop(oldest)
            kept[sizes] = found
            return found

    def admits(self, sizes: Sizes) -> bool:
        """Whether a plan for these shapes alone is worth it. Is asked under the part's lock."""
        return self._admission.allows(sizes)

    def plan_its_own(self, key: CallKey) -> None:
        """Has the next call of these shapes planned for."""
        with self._lock:
            if self.sized is not None and self.sized.resizable is not None:
                self.sized.resizable.wants_its_own(key)
            self.plans.pop(key.shapes, None)

    def _planned(self, arrays: Sequence[Any], by_steps: bool) -> ExecutionPlan | None:
        try:
            feeds = {
                Endpoint(name, 0): (DType.of_numpy(array.dtype), array.shape)
                for name, array in zip(self.inputs, arrays, strict=True)
            }
        except GraphError:  # no tensor has such a type
            return self.unplanned
        return self.plan(self, feeds, by_steps)


def sized_inputs(plan: Plan, members: Collection[str], inputs: Sequence[Endpoint]) -> tuple[int, ...]:
    """The positions of the inputs that decide of shapes only."""
    found = []
    for position, endpoint in enumerate(inputs):
        takers = [plan.items[name] for name in plan.takers(endpoint) if name in members]
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
            part.plan, partial(_with_values, part, known), part.members,
            tuple(part.inputs[position] for position in self._rest), part.outputs,
            f"{part.key} {said}" if part.key else "",
        )  # fmt: skip


def _with_values(part: DynamicPart, known: dict[str, Any]) -> Graph:
    """The part's nodes with these inputs as constants."""
    return part.graph.replace(
        [const(node.name, known[node.name]) if node.name in known else node for node in part.graph]
    )
