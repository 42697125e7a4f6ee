"""Calls whose sizes change from run to run: a plan for each size, or one for all.

A plan for fixed shapes is the quickest to run, and takes as long to make as tens or hundreds of runs. Texts and
recordings come in any length. Where LiteRT takes all layers of a model, the program for one length serves others if it
holds for all (resizable_calls.py). Else a plan is made in which the changing sizes are open: loops stay loops, whose
bodies are compiled, and what depends on the length runs in NumPy. This is done for the second length where a plan takes
long, and else after some. A length that comes so often that its runs, and what it took to open the plan, have cost as
much as a plan of its own gets that (the rule for renting or buying: at most twice the best).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pocketgraph.graph import Graph
from pocketgraph.graph.op_traits import CONVOLUTIONS, SAME_ELEMENTS, ops_with
from pocketgraph.litert.cost_model import LATER_SHARE, LEAST_PLANS, LEAST_PRICE, LEAST_SPENT, OPENED_TRIES
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, FixedPlan, Request

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.resizable import Shapes
    from pocketgraph.runtime.engines.needed import Item
    from pocketgraph.runtime.planning.sizes.resizable_calls import ResizableCalls
    from pocketgraph.runtime.planning.sizes.served_calls import PlanItsOwn

MOST_COMPILED = 3  # plans for single shapes that may come to serve others
MOST_SHAPES = 4096  # whose time is counted; more are forgotten


class SizedCalls:
    """What is known of calls that differ in shapes alone, and which of them are planned for their shapes. Is asked
    under the session's lock.

    Attributes:
        first: the key of the first one.
        changing: which sizes change: (feed, axis).
        plans: how many plans for single shapes were made.
        seconds: what these took, but for the first, of the processor.
        first_seconds: what the first took.
        spent: how long each shape has run with open sizes, in seconds of the processor; and what these were opened in,
            where it was for this shape.
        served: how long a program that serves several sizes has run with these shapes, in seconds of the processor.
        refused: running with open sizes takes longer than planning.
        tried: how many runs with open sizes this was judged by so far.
        quickest: how long the quickest of these took, in seconds of the processor.
        compiled: the last plans that are one executable each.
        resizable: the programs that serve several sizes.
    """

    def __init__(self, first: CallKey) -> None:
        self.first = first
        self.changing: set[tuple[int, int]] = set()
        self.plans, self.seconds, self.first_seconds = 0, 0.0, 0.0
        self.spent: dict[CallKey, float] = {}
        self.served: dict[Shapes, float] = {}
        self.refused, self.tried, self.quickest = False, 0, math.inf
        self.compiled: deque[FixedPlan] = deque(maxlen=MOST_COMPILED)
        self.resizable: ResizableCalls | None = None

    @property
    def price(self) -> float:
        """Seconds: what a plan for one more shape takes."""
        return self.seconds / (self.plans - 1) if self.plans > 1 else LATER_SHARE * self.first_seconds

    @property
    def waits_for_shapes(self) -> bool:
        """Whether parts of the plans are planned when they run, whose time is not counted."""
        return any(math.isinf(plan.work) for plan in self.compiled)

    def is_due(self, key: CallKey) -> bool:
        """Whether a call is better run with open sizes than planned for."""
        is_dear = self.plans > 0 and (self.price >= LEAST_PRICE or self.waits_for_shapes)
        is_its_own = self.resizable is not None and key.shapes in self.resizable.own
        if self.refused or is_its_own or not (is_dear or (self.plans >= LEAST_PLANS and self.seconds >= LEAST_SPENT)):
            return False
        return self.spent.get(key, 0.0) < self.price

    def plan_for_all(
        self, request: Request, plan_its_own: PlanItsOwn, ran_once: Callable[[float], None] | None = None
    ) -> ExecutionPlan | None:
        """A plan that runs a call though it was made for other sizes; None where there is none.

        Args:
            request: what is to be run, with the whole graph where there are plans.
            plan_its_own: as for AnySizes.
            ran_once: is told that a plan which serves one run has served it.
        """
        from pocketgraph.runtime.planning.sizes.resizable_calls import ResizableCalls

        if self.resizable is None:
            self.resizable = ResizableCalls()
        plan = self.resizable.plan(request.call, tuple(self.compiled), request, self.first_seconds + self.seconds)
        if plan is None:
            return None
        if plan.once_with is not None:
            return plan.timed(ran_once) if ran_once is not None else plan
        tiles = "winograd_convolutions" not in request.without
        return self.resizable.timed(plan, request.call, self.pays, plan_its_own, tiles=tiles)

    def note_compiled(
        self, key: CallKey, plan: ExecutionPlan, seconds: float, graph: Graph, items: Mapping[str, Item]
    ) -> None:
        """Notes a plan for one set of shapes that may come to serve others, the seconds that it took, the whole graph
        and the nodes of it that are needed."""
        inferred, plan.inferred = plan.inferred, None
        if inferred is not None:
            self.compiled.append(FixedPlan.of(key, plan, inferred, seconds, graph, dict(items)))

    def pays(self, shapes: Shapes, seconds: float) -> bool:
        """Notes a run of a program that serves several sizes; says whether these have run as long as a plan takes."""
        if len(self.served) >= MOST_SHAPES:
            self.served.clear()
        self.served[shapes] = spent = self.served.get(shapes, 0.0) + seconds
        return spent >= self.price

    def note_planned(self, seconds: float) -> None:
        """Notes what a plan for one set of shapes took, be it to make or to read."""
        if self.plans:
            self.seconds += seconds
        else:
            self.first_seconds = seconds
        self.plans += 1

    def note_run(self, key: CallKey, seconds: float) -> bool:
        """Notes a run with open sizes; says whether the next one is to be planned for."""
        if self.tried < OPENED_TRIES:
            self.tried += 1
            self.quickest = min(self.quickest, seconds)
            self.refused |= self.tried == OPENED_TRIES and self.quickest > self.price
        self.note(key, seconds)
        return not self.is_due(key)

    def note(self, key: CallKey, seconds: float) -> None:
        """Notes how long these shapes have run."""
        if len(self.spent) >= MOST_SHAPES:
            self.spent.clear()
        self.spent[key] = self.spent.get(key, 0.0) + seconds

    def opened(self, key: CallKey) -> CallKey:
        """The key with the sizes left open that have changed so far."""
        self.changing |= key.differing(self.first)
        return key.with_open(self.changing)


def may_be_open(graph: Graph, items: Mapping[str, Item]) -> bool:
    """Whether NumPy may take less time with open sizes than a plan: no convolution over planes, or loops beside such,
    which a plan writes out for each size."""
    from pocketgraph.graph.model_file_graph import is_model_file

    if is_model_file(graph):
        return False
    convolutions, loops = CONVOLUTIONS, ops_with("enter", "loop")
    return any(item.node.op in loops for item in items.values()) or not any(
        item.node.op in convolutions and not _is_along_a_line(item, graph) for item in items.values()
    )


def _is_along_a_line(item: Item, graph: Graph) -> bool:
    node = graph.find_producer(item.data[1].node, SAME_ELEMENTS)
    if node is None or node.op != "Const":
        return False
    return len(node.tensor.shape) == 3 or 1 in node.tensor.shape[:2]  # three: that of a Conv1D, before it is expanded
