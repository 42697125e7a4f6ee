"""What is known of a graph before it runs, and the graph made simpler by it: values, branches, constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Shape, parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.runtime.engines.builder import STRUCTURAL, Builder
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.frames import ROOT, frames_of, has_loops
from pocketgraph.runtime.engines.functions import Library
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.planning.constant_deduplication import deduplicate_constants
from pocketgraph.runtime.planning.idle_dropout import without_idle_dropout
from pocketgraph.runtime.planning.missing import check_kernels
from pocketgraph.runtime.planning.split_hoisting import hoist_over_splits
from pocketgraph.runtime.planning.static_branches import SWITCH, known_predicates, without_static_branches
from pocketgraph.runtime.unrolling.loops import unrolled

MOST_PASSES = 6  # writing a loop out may tell how often another one turns
STATIC_WITH_INPUTS = ops_with("constant", "passes") | {"NoOp"}
"""Of the ops that the engine carries out itself, those that give the same value whenever their inputs do."""


class Known(NamedTuple):
    """A graph made simpler for one set of feed types and shapes.

    Attributes:
        graph: the graph.
        plan: its needed nodes.
        inferred: types, shapes and values of its tensors.
        conditional: nodes outside of loops that do not run in every run.
        static: nodes whose outputs are the same in every run.
    """

    graph: Graph
    plan: Plan
    inferred: Inferred
    conditional: set[str]
    static: set[str]


def specialized(
    graph: Graph,
    feeds: Mapping[Endpoint, tuple[DType | None, tuple[int, ...]]],
    values: Mapping[str, np.ndarray[Any, Any]],
    fetches: Collection[Endpoint],
    targets: Collection[str],
    items: Mapping[str, Item] | None = None,
    *,
    may_chunk: bool = True,
    may_unroll: bool = True,
) -> Known:
    """Works out what follows from the types and shapes of the feeds (and from the values given), and uses it.

    ``items`` are the graph's needed nodes, when the caller knows them. Where one program has to hold the whole graph,
    ``may_chunk`` is False: loops are written out whole, or stay. Where ``may_unroll`` is False all of them stay.

    Raises:
        RunError: a loop of the graph is wrong.
        MissingKernelError: see ``conditional_nodes``.
    """
    work = _Work(graph, feeds, values, fetches, targets, items)
    work.use_known_values()
    work.take(deduplicate_constants(work.graph, work.plan, work.inferred, work.held))
    work.plan_anew()
    has_frames = any(frame.depth for frame in work.plan.frames.values())
    # A loop that draws no numbers any more can be written out.
    if has_frames and work.take(work.without_idle_dropout()):
        work.plan_anew()
        work.conditional &= work.plan.items.keys()
    if may_unroll:
        _write_loops_out(work, may_chunk=may_chunk)
    if work.take(hoist_over_splits(work.graph, work.plan, work.held)):
        work.infer_anew()
        work.plan_anew()
        work.conditional = conditional_nodes(work.plan)
    if work.take(work.without_idle_dropout()):
        work.plan_anew()
    if not work.conditional and work.waits_idly():
        work.take(work.graph.map_nodes(_without_waiting))
        work.plan_anew()
    conditional = work.conditional & work.plan.items.keys()
    return Known(work.graph, work.plan, work.inferred, conditional, static_nodes(work.plan))


class _Work:
    """A graph on its way, with what is known of it so far. What knows less than the graph is made anew when asked to.

    Attributes:
        graph, plan, inferred, conditional: as in ``Known``.
        held: nodes that must stay: what is fed, fetched or run.
    """

    def __init__(
        self,
        graph: Graph,
        feeds: Mapping[Endpoint, tuple[DType | None, tuple[int, ...]]],
        values: Mapping[str, np.ndarray[Any, Any]],
        fetches: Collection[Endpoint],
        targets: Collection[str],
        items: Mapping[str, Item] | None,
    ) -> None:
        """Takes the branches out that certainly are not taken. Arguments are those of ``specialized``."""
        self._fed, self._fetches, self._targets, self._values = frozenset(feeds), fetches, targets, values
        self._types = {str(e): (dtype, Shape(shape)) for e, (dtype, shape) in feeds.items() if dtype is not None}
        self._wanted = [*map(str, fetches), *targets]
        self._fed_nodes = {endpoint.node for endpoint in feeds}
        self.held = {*self._fed_nodes, *(e.node for e in fetches), *targets}
        self.graph = graph.map_nodes(lambda node: node if node.name in self._fed_nodes else _without_default(node))
        items = needed(self.graph, self._fed, fetches, targets, items)
        self.inferred = infer(self.graph, self._types, values, outputs=self._wanted)
        predicates = known_predicates(items, self.inferred)
        if predicates:
            self.graph = without_static_branches(self.graph, items, self._fed, predicates, fetches)
            items = needed(self.graph, self._fed, fetches, targets)
            self.infer_anew()
        self.plan = _plan(self.graph, items, self._fed)
        self.conditional = conditional_nodes(self.plan)

    def take(self, graph: Graph) -> bool:
        """Goes on with this graph; says whether it is another one."""
        changed, self.graph = graph is not self.graph, graph
        return changed

    def plan_anew(self) -> None:
        """The plan of the graph as it is now."""
        items = needed(self.graph, self._fed, self._fetches, self._targets, self.plan.items)
        self.plan = _plan(self.graph, items, self._fed)

    def infer_anew(self) -> None:
        """Types, shapes and values of the graph as it is now."""
        self.inferred = infer(self.graph, self._types, self._values, outputs=self._wanted, before=self.inferred)

    def keep_needed(self) -> None:
        """Takes out what nobody needs any more, and plans anew."""
        items = needed(self.graph, self._fed, self._fetches, self._targets, self.plan.items)
        kept = [node for node in self.graph if node.name in items or node.name in self._fed_nodes]
        self.graph = self.graph.replace(kept)
        self.infer_anew()
        self.plan = _plan(self.graph, items, self._fed)

    def use_known_values(self) -> bool:
        """``with_known_values`` of the graph as it is now; says whether there are any."""
        nodes = len(self.graph.nodes)
        known = with_known_values(self.graph, self.plan, self.conditional, self.inferred, self._fetches)
        changed = self.take(known)
        if len(known.nodes) > nodes:  # nothing is known of the new ones yet
            self.infer_anew()
        return changed

    def without_idle_dropout(self) -> Graph:
        """``without_idle_dropout`` of the graph as it is now."""
        return without_idle_dropout(self.graph, self.plan, self.inferred, self.conditional)

    def waits_idly(self) -> bool:
        """Whether nodes wait for others, and it makes no difference to any of them."""
        items = self.plan.items.values()
        return any(item.control for item in items) and all(map(_is_pure, items))


def _write_loops_out(work: _Work, *, may_chunk: bool) -> None:
    """Writes loops of known length out; one may tell how often another turns."""
    for _ in range(MOST_PASSES):
        straight = unrolled(work.graph, work.plan, work.inferred, work.conditional, work.held, may_chunk=may_chunk)
        if not work.take(straight):
            break
        work.keep_needed()
        work.conditional = conditional_nodes(work.plan)
        if work.use_known_values():
            work.plan_anew()


def _without_waiting(node: Node) -> Node:
    return node.replace(inputs=node.data_inputs) if node.control_inputs else node


def _is_pure(item: Item) -> bool:
    """Whether it makes no difference when the node runs: waiting for such nodes, or letting them wait, is idle."""
    from pocketgraph.graph import opdefs

    definition = opdefs.find(item.node.op)
    if definition is None or definition.stateful or item.node.op in ("Enter", "Merge", "Assert"):
        return item.node.op.startswith("Placeholder")
    return bool(definition.outputs) or item.node.op == "NoOp"


def _plan(graph: Graph, items: Mapping[str, Item], fed: frozenset[Endpoint]) -> Plan:
    frames = frames_of(items, fed) if has_loops(items) else dict.fromkeys(items, ROOT)
    return Plan(items, fed, frames, {}, Library(graph))


def _without_default(node: Node) -> Node:
    """A placeholder that takes its default; the shape it declares is only what it could be fed with."""
    if node.op != "PlaceholderWithDefault":
        return node
    return Node(node.name, "Identity", node.inputs, {"T": node.attrs["dtype"]} if "dtype" in node.attrs else {})


def with_known_values(
    graph: Graph, plan: Plan, conditional: Collection[str], inferred: Any, fetched: Collection[Endpoint]
) -> Graph:
    """The graph with constants for the tensors whose values follow from the feeds' shapes, such as a Shape's.

    A node of one output becomes a constant; of one with several, those whose values are known are read from new ones.
    """
    from pocketgraph.graph import const

    changed: dict[str, Node] = {}
    taken: dict[str, set[int]] = {}
    for item in plan.items.values():
        for endpoint in item.data:
            taken.setdefault(endpoint.node, set()).add(endpoint.port)
    outside: dict[str, set[int]] = {}
    for endpoint in fetched:
        outside.setdefault(endpoint.node, set()).add(endpoint.port)
    moved: dict[Endpoint, Node] = {}
    for name, item in plan.items.items():
        if item.node.op in STRUCTURAL or not item.data:
            continue
        if name in conditional or plan.frames[name].depth:  # a constant would not know when it is dead
            continue
        ports = taken.get(name, set())
        if ports | outside.get(name, set()) == {0}:
            value, dtype = inferred.value(f"{name}:0"), inferred.dtype(f"{name}:0")
            if value is not None and dtype is not None:
                changed[name] = const(name, value, dtype.base, inputs=[f"^{waited}" for waited in item.control])
            continue
        for port in ports:
            value, dtype = inferred.value(f"{name}:{port}"), inferred.dtype(f"{name}:{port}")
            own = f"{name}/known_{port}"
            is_fed = Endpoint(name, port) in plan.fed
            if value is not None and dtype is not None and own not in graph.nodes and not is_fed:
                waits = [f"^{waited}" for waited in item.control]
                moved[Endpoint(name, port)] = const(own, value, dtype.base, inputs=waits)
    if not changed and not moved:
        return graph
    nodes = [changed.get(node.name, node) for node in graph]
    if moved:
        readers = {n for n, item in plan.items.items() if any(endpoint in moved for endpoint in item.data)}
        nodes = [_reading(node, moved) if node.name in readers else node for node in nodes]
        nodes += moved.values()
    return graph.replace(nodes)


def _reading(node: Node, moved: Mapping[Endpoint, Node]) -> Node:
    """A node that reads these constants instead of what they are equal to."""
    inputs = []
    for text in node.inputs:
        ref = parse_ref(text)
        known = None if ref.control else moved.get(Endpoint(ref.name, ref.port))
        inputs.append(text if known is None else known.name)
    return node.replace(inputs=inputs)


def static_nodes(plan: Plan) -> set[str]:
    """The nodes whose outputs are the same in every run: constants, what pure ops make of them, and idle NoOps."""
    from pocketgraph.graph import opdefs

    consumers: dict[str, list[str]] = {}
    missing: dict[str, int] = {}
    static: set[str] = set()
    ready: list[str] = []
    for name, item in plan.items.items():
        op = item.node.op
        definition = opdefs.find(op)
        is_pure = definition is not None and not definition.stateful
        if plan.frames[name].depth or not is_pure or op in STRUCTURAL - STATIC_WITH_INPUTS:
            continue
        if not item.data and op not in ("Const", "NoOp"):
            continue
        missing[name] = len(item.data) + len(item.control)
        for endpoint in item.data:
            if endpoint not in plan.fed:
                consumers.setdefault(endpoint.node, []).append(name)
        for waited in item.control:
            consumers.setdefault(waited, []).append(name)
        if not missing[name]:
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
    check_kernels((item.node for item in plan.items.values()), plan.library)
    if all(plan.frames[name].depth for name in switches):  # only those that loops end by
        return switches
    builder = Builder(plan, ROOT)
    for endpoint in plan.fed:
        builder.bind(endpoint)
    builder.build(list(plan.items))
    return switches | {name for name, live in builder.node_live.items() if live.atoms}
