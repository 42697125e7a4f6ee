"""Parts of a graph that are planned when they run, once for each shape they run with.

Inside loops, branches and functions, and after tensors whose size depends on values, shapes are known only in the run.
There each heavy part is a small graph of its own: when it is called with shapes not seen before it is planned like any
graph, by the planner that planned the rest, so that LiteRT takes what it can, and kept for the next time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from functools import partial
from typing import Any

from pocketgraph.graph import DType, Graph, Node
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import HEAVY, PASSES_OR_ENTERS, ops_with
from pocketgraph.litert.cost_model import FEW_SCORES
from pocketgraph.runtime.engines.compilation_units import IN_NUMPY, PartCall, Plan
from pocketgraph.runtime.engines.needed import Item, behind, needed
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.call_times import is_worth_it
from pocketgraph.runtime.planning.dynamic_part import DynamicPart, ValueKeyedPart, sized_inputs
from pocketgraph.runtime.planning.execution_plan import NO_GRAPH, ExecutionPlan, Request, Runnable
from pocketgraph.runtime.planning.sizes.open_sizes import SizedCalls

KeptPart = tuple[str, list[str], list[Endpoint], list[Endpoint]]
"""A part as it is kept between processes: the node that it is called by, its nodes, what it takes, what it gives."""

CHECKS = ops_with("checks")
REFUSED = ("string", "double", "complex64", "complex128", "resource", "variant")


class DynamicPartPlanner:
    """Says which nodes may be planned when they run, and makes the calls (see engines/dynamic_part_search.py).

    Args:
        request: what the parts belong to; its planner plans them.
        graph: where constants and functions are found.
        able: the nodes that may be in a dynamic part; None for all (the body of a function).
        static: nodes whose outputs are the same in every run.
        opened: what is compiled for the parts is added to it.
        parts: what an earlier process found to be the parts; None: they are to be found.
        inside: tells the parts of function bodies from others in keys.
    """

    def __init__(
        self,
        request: Request,
        graph: Graph,
        able: Collection[str] | None,
        static: Collection[str],
        opened: list[Runnable],
        *,
        parts: Sequence[KeptPart] | None = None,
        inside: str = "",
    ) -> None:
        self.request = request
        self.graph = graph
        self.threads = request.threads
        self.able = able
        self.static = static
        self.opened = opened
        self.parts = parts
        self.key = f"{request.call.of_call(request.key)}{inside}" if request.key else ""
        self._is_static: dict[tuple[int, str], bool] = {}
        self._scores = 0  # that were sorted out so far
        self._lowered: Container[str] | None = None

    def for_bodies(self) -> DynamicPartPlanner:
        """The same for the bodies of functions, whose nodes have names of their own."""
        return DynamicPartPlanner(self.request, self.graph, None, (), self.opened, inside=" body")

    def plan(self, part: DynamicPart, feeds: Mapping[Endpoint, Any], by_steps: bool) -> ExecutionPlan | None:
        """Plans a part for its inputs' types and shapes (see dynamic_part.PartPlanner)."""
        planner = self.request.planner
        assert planner is not None
        wanted = self.request.replace(
            graph=NO_GRAPH,
            call=CallKey.of(feeds, part.outputs, (), {}, traced=by_steps),
            values={},
            key="" if by_steps else part.key,
            engine="auto" if self.request.engine == "auto" else None,
            exact=True,
            measure=False,
            files=None,
        )
        make = partial(planner, wanted, lambda: part.graph)
        if by_steps:
            found: ExecutionPlan | None = make()
        elif wanted.engine is not None or wanted.check == "always" or "resizable_programs" in wanted.without:
            found = make() if part.admits(wanted.call.shapes) else None
        else:
            found = self._sized(part, wanted, make)
        if found is not None:
            self.opened.extend(each for each in found.executables if each not in self.opened)
        return found

    @staticmethod
    def _sized(part: DynamicPart, wanted: Request, make: Callable[[], ExecutionPlan]) -> ExecutionPlan | None:
        """A plan of a program for all shapes, where there is one, else for these alone, if that is worth it."""
        key = wanted.call
        if part.sized is None:
            part.sized = SizedCalls(key)
        known = part.sized
        found = known.plan_for_all(wanted.replace(graph=part.graph), part.plan_its_own) if known.plans else None
        if found is not None or not part.admits(key.shapes):
            return found
        began = time.thread_time()
        plan = make()
        took = time.thread_time() - began
        known.note_planned(took)
        if plan.inferred is not None:
            items = needed(part.graph, frozenset(dict(key.feeds)), key.fetches, ())
            known.note_compiled(key, plan, took, part.graph, items)
        return plan

    def is_heavy(self, item: Item) -> bool:
        return item.node.op in HEAVY and self.is_able(item)

    def is_worth_it(self, items: Sequence[Item], plan: Plan, tensors: int) -> bool:
        return is_worth_it(items, plan, tensors)

    def is_able(self, item: Item) -> bool:
        if self._lowered is None:
            from pocketgraph.litert.lowering import LOWERINGS

            self._lowered = LOWERINGS
        node = item.node
        if node.op not in self._lowered or node.op in IN_NUMPY:
            return False
        if self.able is not None and node.name not in self.able:
            return False
        if node.op in CHECKS:
            from pocketgraph.graph.opdefs import is_stateful  # which a stored plan does without

            if is_stateful(node.op):  # somebody may wait for nothing but the check
                return False
        return not any(isinstance(v, DType) and (v.name in REFUSED or v.is_ref) for v in node.attrs.values())

    def is_static(self, name: str, plan: Plan) -> bool:
        key = (id(plan), name)
        found = self._is_static.get(key)
        if found is None:
            found = self._is_static[key] = self._static(name, plan)
        return found

    def _static(self, name: str, plan: Plan) -> bool:
        asked = name
        for _ in range(len(plan.items)):
            item = plan.items.get(name)
            if item is None:
                return False
            if name in self.static:
                return True
            if item.node.op == "Const":  # what a Const waits for, those who take it wait for too (units.waits_of)
                return name == asked or not item.control
            passes = (item.node.op in PASSES_OR_ENTERS and len(item.data) == 1) or item.node.op == "Switch"
            if not passes or item.data[0] in plan.fed:
                return False
            if item.control and item.node.op == "Switch":
                return False
            if item.node.op == "Enter" and not item.node.attr("is_constant", False):
                return False
            name = item.data[0].node
        return False

    def decided(self, plan: Plan) -> list[PartCall] | None:
        if self.parts is None:
            return None
        return [
            PartCall(
                Node(heaviest, plan.items[heaviest].node.op), frozenset(members), tuple(inputs), tuple(outputs),
                self.call(plan, members, inputs, outputs), is_dynamic=True,
            )
            for heaviest, members, inputs, outputs in self.parts
        ]  # fmt: skip

    def quicker(self, node: Node, call: Callable[..., Any]) -> Callable[..., Any]:
        if "NonMaxSuppression" not in node.op:  # as cheap as can be: it is asked for every node
            return call
        quick: Callable[..., Any] | None = None

        def suppression(*inputs: Any) -> Any:
            nonlocal quick
            if quick is None:
                self._scores += inputs[1].size
                if self._scores <= FEW_SCORES:
                    return call(*inputs)
                from pocketgraph.litert.suppression import HELPED, quicker

                quick = quicker(node, call) if node.op in HELPED else call
            return quick(*inputs)

        return suppression

    def call(
        self, plan: Plan, members: Sequence[str], inputs: Sequence[Endpoint], outputs: Sequence[Endpoint]
    ) -> DynamicPart | ValueKeyedPart:
        """A part as a call; its nodes' waiting for others is seen to by the caller."""
        taken = {endpoint: f"given_{index}" for index, endpoint in enumerate(inputs)}
        while any(name in plan.items for name in taken.values()):
            taken = {endpoint: f"{name}_" for endpoint, name in taken.items()}
        key = f"{self.key}|{members[0]} {len(members)}" if self.key else ""
        make_graph = partial(self._graph_of, plan, tuple(members), taken)
        part = DynamicPart(self.plan, make_graph, tuple(members), tuple(taken.values()), tuple(outputs), key)
        sized = sized_inputs(plan, set(members), inputs)
        return ValueKeyedPart(part, sized) if sized else part

    def _graph_of(self, plan: Plan, members: Sequence[str], taken: Mapping[Endpoint, str]) -> Graph:
        """The nodes of a part with what they read from outside, the ``taken``, as placeholders."""
        nodes: dict[str, Node] = {name: Node(name, "Placeholder") for name in taken.values()}
        waiting = list(members)
        while waiting:
            name = waiting.pop()
            if name in nodes:
                continue
            item = plan.items[name]
            op, attrs = item.node.op, item.node.attrs
            if op == "Enter":
                op, attrs = "Identity", {"T": attrs["T"]} if "T" in attrs else {}
            known = {
                e for e in item.data if e in taken and _is_constant(e, plan)
            }  # given to tell whether the part runs
            # where the part runs, each Switch before it has passed its input on
            data = [
                e if e in taken and e not in known else behind(plan.items, e, ("Switch",), plan.fed) for e in item.data
            ]
            nodes[name] = Node(name, op, [str(e) if e in known else taken.get(e) or str(e) for e in data], attrs)
            waiting.extend(e.node for e in data if e not in taken or e in known)
        return self.graph.replace(nodes.values(), inputs=(), outputs=(), signatures={})


def _is_constant(endpoint: Endpoint, plan: Plan) -> bool:
    """Whether a tensor has one value, be it that it is there on one branch only."""
    item = plan.items.get(endpoint.node)
    return item is not None and item.node.op == "Const" and endpoint not in plan.fed


def may_be_dynamic(item: Item, shape_of: Callable[[str], Any], dtype_of: Callable[[str], DType | None]) -> bool:
    """Whether a node outside of loops and branches waits for the run only to learn its inputs' shapes."""
    unknown = False
    for endpoint in item.data:
        dtype = dtype_of(str(endpoint))
        if dtype is not None and (dtype.base in (RESOURCE, VARIANT) or dtype.is_ref):
            return False
        unknown |= not shape_of(str(endpoint)).is_known
    return unknown
