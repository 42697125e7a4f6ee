"""A graph as it would be run: in import order, fed inputs cut loose, only what the outputs need, every default written.

Order, spelling of inputs and the defaults are those that TensorFlow 1.15 gives a graph that it imports, prepares for
execution and exports again, so that the result can be compared with the original tool's node for node.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pocketgraph.errors import GraphError, TransformError, option
from pocketgraph.graph import AttrValue, DType, Graph, Node, Ref, canonical, opdefs, parse_ref
from pocketgraph.graph.entry_points import unknown_node_hint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import MERGE, NEXT_ITERATION, NO_DEFAULT_PLACEHOLDERS
from pocketgraph.graph.opdefs import known_output_dtypes
from pocketgraph.transforms.original.import_checks import check_colocation, check_inputs


@dataclass(slots=True)
class FlowStep:
    """One node of the flow.

    Attributes:
        node: the node, with its op's defaults written; its inputs are not looked at, but ``data`` and ``control``.
        data: where each data input comes from: a step's name and port.
        control: the names of the steps that must come before.
        hidden: whether the step only stands for a feed and is not exported.
        dtypes: the types of the outputs, where they are known.
    """

    node: Node
    data: list[tuple[str, int]]
    control: set[str]
    hidden: bool = False
    dtypes: tuple[DType, ...] | None = None

    def sources(self) -> list[str]:
        """The steps that this one needs, by name, once a reference."""
        names = [name for name, _ in self.data]
        return names + sorted(self.control) if self.control else names


@dataclass
class Flow:
    """The graph as it would be run.

    Attributes:
        steps: by name, in import order.
        fed: the name of the step that stands for each fed tensor.
        fetched: the tensors that are asked for.
    """

    steps: dict[str, FlowStep]
    fed: Mapping[str, Ref] = field(default_factory=dict)
    fetched: Sequence[Ref] = ()

    def export(self, added: Iterable[FlowStep] = ()) -> list[Node]:
        """The nodes again, and the added ones behind them; a fed tensor is spelled with its port."""
        return [self._exported(step) for step in (*self.steps.values(), *added) if not step.hidden]

    def _exported(self, step: FlowStep) -> Node:
        inputs = []
        for name, port in step.data:
            feed = self.fed.get(name)
            if feed is not None:
                inputs.append(f"{feed.name}:{feed.port}")
            else:
                inputs.append(f"{name}:{port}" if port else name)
        for name in sorted(step.control):
            feed = self.fed.get(name)
            inputs.append(f"^{name if feed is None else feed.name}")
        return step.node if tuple(inputs) == step.node.inputs else step.node.replace(inputs=inputs)


def flow_of(graph: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> Flow:
    """The flow that gives ``outputs`` when ``inputs`` are fed.

    Raises:
        GraphError: an input refers to no node, or nodes are in a cycle that is no loop.
        TransformError: an input or output is not in the graph, is named twice, or there is none.
    """
    steps = imported(graph)
    feeds, fetches = _endpoints(graph, steps, inputs, outputs)
    fed = {f"_recv_{ref.name}_{ref.port}": ref for ref in feeds}
    stands_for = {(ref.name, ref.port): name for name, ref in fed.items()}
    before: dict[str, set[str]] = {}
    for name, ref in fed.items():
        if steps[ref.name].node.op in NO_DEFAULT_PLACEHOLDERS:
            before.setdefault(ref.name, set()).add(name)
    for step in steps.values():
        for place, edge in enumerate(step.data):
            if edge in stands_for:
                step.data[place] = (stands_for[edge], 0)
        if step.control:
            for name in step.control & before.keys():
                step.control.remove(name)
                step.control |= before[name]
    for name in fed:
        steps[name] = FlowStep(Node(name, "_Recv"), [], set(), hidden=True)
    flow = Flow(steps, fed, fetches)
    needed = _needed(flow, [stands_for.get((ref.name, ref.port), ref.name) for ref in fetches])
    if len(needed) < len(steps):
        flow.steps = {name: step for name, step in steps.items() if name in needed}
    return flow


def imported(graph: Graph) -> dict[str, FlowStep]:
    """Every node as a step, producers first, among those that are ready the one that the file names first.

    Raises:
        GraphError, TransformError: as for ``flow_of``, where inputs do not fit an op's signature, too.
    """
    nodes = list(graph)
    index = dict(zip(graph.nodes, range(len(nodes)), strict=True))
    refs = [[parse_ref(text) for text in node.inputs] for node in nodes]
    consumers: list[list[int]] = [[] for _ in nodes]
    pending = []
    loops = [False] * len(nodes)
    for i, node in enumerate(nodes):
        back = False
        for ref in refs[i]:
            source = index.get(ref.name)
            if source is None:
                raise GraphError(f"unknown input node '{ref.name}'", where=f"node '{node.name}'")
            consumers[source].append(i)
            back |= node.op in MERGE and not ref.control and nodes[source].op in NEXT_ITERATION
        loops[i] = back
        pending.append(sum(ref.control for ref in refs[i]) + 1 if back else len(refs[i]))
    ready = [i for i, count in enumerate(pending) if count == 0]
    defaults: dict[str, Mapping[str, AttrValue]] = {}
    steps: dict[str, FlowStep] = {}
    entered: list[FlowStep] = []  # the heads of loops, whose inputs from behind come later
    while ready:
        i = heapq.heappop(ready)
        node = nodes[i]
        mine, refs[i] = refs[i], []
        data = [(name, port) for name, port, control in mine if not control]
        node = _with_defaults(graph, node, defaults)
        step = FlowStep(node, data, {ref.name for ref in mine if ref.control}, dtypes=known_output_dtypes(node))
        steps[node.name] = step
        check_colocation(node, index)
        if loops[i]:
            entered.append(step)
        else:
            _check_inputs(step, steps)
        for consumer in consumers[i]:
            if loops[consumer] and node.op in NEXT_ITERATION:
                continue
            pending[consumer] -= 1
            if pending[consumer] == 0:
                heapq.heappush(ready, consumer)
    if len(steps) < len(nodes):
        stuck = [node.name for node in nodes if node.name not in steps]
        raise GraphError(f"{len(stuck)} nodes are in a cycle or behind one: {', '.join(stuck[:3])}")
    for step in entered:
        _check_inputs(step, steps)
    return steps


def _check_inputs(step: FlowStep, steps: Mapping[str, FlowStep]) -> None:
    check_inputs(step.node, [(name, port, steps[name].dtypes) for name, port in step.data])


def _with_defaults(graph: Graph, node: Node, cache: dict[str, Mapping[str, AttrValue]]) -> Node:
    if node.op not in cache:
        cache[node.op] = _defaults(graph, node)
    missing = {key: value for key, value in cache[node.op].items() if key not in node.attrs}
    return node.replace(attrs={**node.attrs, **missing}) if missing else node


def _defaults(graph: Graph, node: Node) -> Mapping[str, AttrValue]:
    """The defaults of an op, without those that TensorFlow 1.15 does not know of an op that it knows; of an unknown op
    none."""
    found = opdefs.find(node.op) if node.op not in graph.functions else None
    return {} if found is None else found.written_defaults


def _endpoints(
    graph: Graph, steps: Mapping[str, FlowStep], inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[list[Ref], list[Ref]]:
    if not outputs:
        raise TransformError("fold_constants must know at least one output", hint=f"name it with {option('outputs')}")
    for i, name in enumerate(inputs):
        if name in inputs[:i]:
            raise TransformError(f"the input '{name}' is given more than once")
    fed = {canonical(name) for name in inputs}
    for name in outputs:
        if canonical(name) in fed:
            raise TransformError(f"'{name}' is both an input and an output")
    both = [[parse_ref(name) for name in inputs], [parse_ref(name) for name in outputs]]
    for what, refs in zip(("input", "output"), both, strict=True):
        for ref in refs:
            if ref.name not in steps:
                raise TransformError(
                    f"the graph has no node '{ref.name}', which is given as {what}",
                    hint=unknown_node_hint(graph, ref.name, is_fed=what == "input"),
                )
            dtypes = steps[ref.name].dtypes
            if dtypes is not None and not 0 <= ref.port < len(dtypes):
                op = steps[ref.name].node.op
                raise TransformError(
                    f"the {what} '{ref.name}:{ref.port}' is not there: the {op} has {len(dtypes)} outputs"
                )
    return both[0], both[1]


def _needed(flow: Flow, starts: Iterable[str]) -> set[str]:
    return set(closure(starts, lambda name: flow.steps[name].sources()))
