"""A graph for one call, on its way through the passes and after them, with what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Shape, opdefs
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ENTER, SWITCH, ops_with
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.runtime.engines.compilation_units import STRUCTURAL, Plan, check_waits
from pocketgraph.runtime.engines.frames import ROOT, frames_of, has_loops
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.planning.call_key import Sized

STATIC_WITH_INPUTS = ops_with("constant", "passes") | {"NoOp"}
"""Of the ops that the engine carries out itself, those that give the same value whenever their inputs do."""
NEVER_STATIC = STRUCTURAL - STATIC_WITH_INPUTS


class GraphState:
    """A graph for one call, made simpler by the passes. What knows less than the graph is made anew when asked to.

    Attributes:
        feeds: the fed tensors, with dtype and shape.
        fetches: the wanted tensors.
        held: nodes that must stay: what is fed, fetched or run.
        without: the passes that are switched off.
        applied: the passes that changed the graph, in order.
    """

    def __init__(
        self,
        graph: Graph,
        feeds: Mapping[Endpoint, Sized],
        values: Mapping[str, np.ndarray[Any, Any]],
        fetches: Collection[Endpoint],
        targets: Collection[str],
        items: Mapping[str, Item] | None = None,
        without: Collection[str] = (),
    ) -> None:
        """``values`` are feeds that may be relied on, by tensor name; ``targets`` nodes to run besides; ``items`` the
        graph's needed nodes, when known."""
        self.graph = graph
        self.feeds = feeds
        self.fetches = fetches
        self.without = without
        self.applied: dict[str, None] = {}
        self._fed, self._targets, self._values = frozenset(feeds), targets, values
        self._types = {str(e): (dtype, Shape(shape)) for e, (dtype, shape) in feeds.items() if dtype is not None}
        self._wanted = [*map(str, fetches), *targets]
        self.fed_nodes = {endpoint.node for endpoint in feeds}
        self.held = {*self.fed_nodes, *(e.node for e in fetches), *targets}
        if items is not None:
            self.items = items
        self._is_stale = False

    @cached_property
    def items(self) -> Mapping[str, Item]:
        """The needed nodes, before there is a plan."""
        return self.needed_now()

    @cached_property
    def inferred(self) -> Inferred:
        """Types, shapes and values of the graph's tensors."""
        return infer(self.graph, self._types, self._values, outputs=self._wanted)

    @cached_property
    def plan(self) -> Plan:
        """The needed nodes, with the loops that they are in."""
        made = _plan(self.graph, self.items, self._fed)
        check_waits(made)  # passes and parts leave out waits that make no difference
        return made

    @cached_property
    def conditional(self) -> set[str]:
        """Nodes outside of loops that do not run in every run.

        Raises:
            MissingKernelError: see ``conditional_nodes``.
        """
        return conditional_nodes(self.plan)

    @cached_property
    def static(self) -> set[str]:
        """The nodes whose outputs are the same in every run, once the passes are over."""
        return static_nodes(self.plan)

    def take(self, graph: Graph) -> bool:
        """Goes on with this graph; says whether it is another one."""
        changed, self.graph = graph is not self.graph, graph
        self._is_stale |= changed
        return changed

    def needed_now(self, known: Mapping[str, Item] | None = None) -> Mapping[str, Item]:
        """The needed nodes of the graph as it is now; ``known`` are those of an earlier form of it."""
        return needed(self.graph, self._fed, self.fetches, self._targets, known)

    def find_items(self, *, reuse: bool = True) -> None:
        """The needed nodes of the graph as it is now, before there is a plan."""
        self.items = self.needed_now(self.__dict__.get("items") if reuse else None)
        self._is_stale = False

    def settle(self) -> None:
        """Brings the plan up to the graph where that has changed since."""
        if self._is_stale and "plan" in self.__dict__:
            self.plan_anew()
        self._is_stale = False

    def plan_anew(self) -> None:
        """The plan of the graph as it is now."""
        items = self.needed_now(self.plan.items)
        self.plan, self._is_stale = _plan(self.graph, items, self._fed), False

    def infer_anew(self) -> None:
        """Types, shapes and values of the graph as it is now."""
        self.inferred = infer(self.graph, self._types, self._values, outputs=self._wanted, before=self.inferred)

    def find_conditional(self) -> None:
        """The conditional nodes of the plan as it is now."""
        self.conditional = conditional_nodes(self.plan)

    def keep_needed(self) -> None:
        """Takes out what nobody needs any more, and plans anew."""
        items = self.needed_now(self.plan.items)
        kept = [node for node in self.graph if node.name in items or node.name in self.fed_nodes]
        self.graph = self.graph.replace(kept)
        self.infer_anew()
        self.plan, self._is_stale = _plan(self.graph, items, self._fed), False


def without_constant_lists(graph: Graph) -> Graph:
    """The graph with nodes that make the lists which are constants; errors as for ``with_lists_made``."""
    if not graph.functions and not any(op.startswith("TensorList") for op in graph.ops):
        return graph  # nothing takes lists
    from pocketgraph.passes.constant_lists import with_lists_made

    return with_lists_made(graph)


def _plan(graph: Graph, items: Mapping[str, Item], fed: frozenset[Endpoint]) -> Plan:
    may_loop = not ENTER.isdisjoint(graph.ops)
    frames = frames_of(items, fed) if may_loop and has_loops(items) else dict.fromkeys(items, ROOT)
    return Plan(items, fed, frames, {}, FunctionLibrary(graph))


def static_nodes(plan: Plan) -> set[str]:
    """The nodes whose outputs are the same in every run: constants, what pure ops make of them, and idle NoOps."""
    consumers: dict[str, list[str]] = {}
    missing: dict[str, int] = {}
    static: set[str] = set()
    ready: list[str] = []
    ops = {item.node.op for item in plan.items.values()}
    never = {op for op in ops if op in NEVER_STATIC or opdefs.is_stateful(op)}
    for name, (node, data, control) in plan.items.items():
        if node.op in never or plan.frames[name].depth or (not data and node.op not in ("Const", "NoOp")):
            continue
        for endpoint in data:
            if endpoint not in plan.fed:
                consumers.setdefault(endpoint.node, []).append(name)
        for waited in control:
            consumers.setdefault(waited, []).append(name)
        if data or control:
            missing[name] = len(data) + len(control)
        else:
            ready.append(name)
    while ready:
        name = ready.pop()
        static.add(name)
        for consumer in consumers.get(name, ()):
            missing[consumer] -= 1
            if missing[consumer] == 0:
                ready.append(consumer)
    return static


def conditional_nodes(plan: Plan) -> set[str]:
    """The nodes of the root region that do not run in every run.

    Raises:
        MissingKernelError: as ``check_kernels``, which is asked where there are branches at all.
    """

    switches = {name for name, item in plan.items.items() if item.node.op in SWITCH}
    if not switches:
        return set()
    from pocketgraph.runtime.missing_kernels import check_kernels

    check_kernels((item.node for item in plan.items.values()), plan.library)
    if all(plan.frames[name].depth for name in switches):  # only those that loops end by
        return switches
    from pocketgraph.runtime.engines.step_builder import Builder  # only graphs with branches need it

    builder = Builder(plan, ROOT)
    for endpoint in plan.fed:
        builder.bind(endpoint)
    builder.build(list(plan.items))
    return switches | {name for name, live in builder.node_live.items() if live.atoms}
