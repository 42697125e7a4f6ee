"""Branches that are decided before the run, as by values that inputs were given, are taken out of a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from pocketgraph.errors import FreezeError
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.graph import DType, Graph, Node, canonical, const, node_name, parse_ref
from pocketgraph.graph.op_traits import BINARY_SWITCHES, NEXT_ITERATION
from pocketgraph.graph.order import MERGES
from pocketgraph.passes.constant_values import ConstantValues
from pocketgraph.passes.inlining import ControlFlow, inlined

_PLAIN = frozenset({"Const", "Identity", "NoOp", "LogicalNot", "LogicalAnd", "LogicalOr"})
"""Not a trait: what the predicates of frozen switches are made of."""


def with_decided_branches(graph: Graph, outputs: Sequence[str], control_flow: ControlFlow) -> Graph:
    """The part that ``outputs`` need once calls are inlined and every branch that is decided before the run is taken.

    One may decide the other: an inlined function holds a Switch, and a Merge that is gone a predicate.

    Raises:
        FreezeError: see inlined and without_known_branches.
    """
    while True:
        before = graph
        graph = extract_sub_graph(inlined(graph, outputs, control_flow), outputs)
        graph = extract_sub_graph(without_known_branches(graph), outputs)
        if graph.nodes.keys() == before.nodes.keys():
            return graph


def without_known_branches(graph: Graph) -> Graph:
    """The graph with every Switch passed by whose predicate is known, and what is on the way not taken dropped.

    ::

        s = Switch(x, p)            p known to be false        a = Relu(x)
        a = Relu(s)                                      ->    y = Identity(a)
        b = Sigmoid(s:1)
        y = Merge(a, b)

    A Merge with one way left becomes an Identity; its second output, where somebody asks for it, a constant. What
    waited for something that never runs never runs itself, as in TensorFlow.

    Raises:
        FreezeError: an output of the graph is on a way not taken.
    """
    known = ConstantValues(graph.nodes)
    ways = {}
    for node in graph:
        if node.op in BINARY_SWITCHES and len(node.data_inputs) == 2:
            way = known.truth(node.data_inputs[1])
            if way is not None:
                ways[node.name] = way
    if not ways:
        return graph
    dead = _dead(graph, ways)
    for name in graph.outputs:
        if _is_dead(name, dead, ways):
            raise FreezeError(
                "the values that were bound decide that it is never computed", where=f"output '{name}'",
                hint="bind other values, or leave this output out",
            )  # fmt: skip
    passed = {canonical(f"{name}:{int(way)}"): graph[name].data_inputs[0] for name, way in ways.items()}
    asked = {ref for node in graph for ref in node.data_inputs if parse_ref(ref).port == 1} | set(graph.outputs)
    nodes: list[Node] = []
    for node in graph:
        if node.name in dead:
            continue
        if node.name in ways:
            if any(node_name(output) == node.name for output in graph.outputs):
                nodes.append(_identity(node, node.data_inputs[0], node.control_inputs))
            continue
        if node.op in MERGES:
            nodes.extend(_merge(node, dead, ways, asked, graph))
        else:
            nodes.append(node)
    result = [_past(node, passed, ways, graph) for node in nodes]
    return without_redundant_control_inputs(graph.replace(result))


def without_redundant_control_inputs(graph: Graph) -> Graph:
    """The graph without control inputs from nodes that follow from constants alone: there is nothing to wait for.

    They are what is left of a branch's pivot when the branch is taken out, and of a function's reads of variables.
    """
    redundant = _from_constants(graph)
    return graph.map_nodes(lambda node: node.without_waits(redundant))


def _from_constants(graph: Graph) -> set[str]:
    """Constants, and the plain nodes that take nothing else."""
    left = {node.name: len(node.inputs) for node in graph if node.op in _PLAIN}
    waiting = [name for name, count in left.items() if not count]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        for node in graph.consumers.get(name, ()):
            if node.name in left:
                left[node.name] -= 1
                if not left[node.name]:
                    waiting.append(node.name)
    return found


def _merge(node: Node, dead: set[str], ways: Mapping[str, bool], asked: Collection[str], graph: Graph) -> list[Node]:
    live = [index for index, ref in enumerate(node.data_inputs) if not _is_dead(ref, dead, ways)]
    if len(live) == len(node.data_inputs):
        return [node]
    inputs = [node.data_inputs[index] for index in live]
    if len(live) > 1:
        return [node.replace(inputs=[*inputs, *node.control_inputs]).with_attrs(N=len(live))]
    if f"{node.name}:1" not in asked:
        return [_identity(node, inputs[0], node.control_inputs)]
    # somebody wants to know which way it came: both outputs must stay under this name
    way = f"{node.name}/way"
    while way in graph:
        way += "_"
    types = (node.dtype().base, DType.named("int32"))
    return [
        const(way, np.int32(live[0])),
        Node(node.name, "IdentityN", [inputs[0], way, *node.control_inputs], {"T": types}),
    ]


def _identity(node: Node, ref: str, controls: Iterable[str]) -> Node:
    return Node(node.name, "Identity", [ref, *controls], {"T": node.dtype().base}, node.device)


def _past(node: Node, passed: Mapping[str, str], ways: Mapping[str, bool], graph: Graph) -> Node:
    inputs: list[str] = []
    for ref in node.inputs:
        for _ in range(len(ways) + 1):
            if canonical(ref) not in passed:
                break
            ref = passed[canonical(ref)]
        if ref.startswith("^") and ref[1:] in ways:  # waiting for a Switch is waiting for what it took
            for source in graph[ref[1:]].inputs:
                inputs += _waiting(source, ways, graph)
        elif ref not in inputs or not ref.startswith("^"):
            inputs.append(ref)
    inputs = [ref for at, ref in enumerate(inputs) if not ref.startswith("^") or ref not in inputs[:at]]
    return node if tuple(inputs) == node.inputs else node.replace(inputs=inputs)


def _waiting(ref: str, ways: Mapping[str, bool], graph: Graph) -> list[str]:
    name = node_name(ref)
    for _ in range(len(ways) + 1):
        if name not in ways:
            break
        name = node_name(graph[name].data_inputs[0])
    return [f"^{name}"]


def _is_dead(ref: str, dead: set[str], ways: Mapping[str, bool]) -> bool:
    name, port, control = parse_ref(ref)
    if name in dead:
        return True
    return name in ways and not control and port != int(ways[name])


def _dead(graph: Graph, ways: Mapping[str, bool]) -> set[str]:
    """The nodes that never run."""
    dead: set[str] = set()
    waiting = [node for name in ways for node in graph.consumers.get(name, ())]
    while waiting:
        node = waiting.pop()
        if node.name in dead or node.op == "ControlTrigger":
            continue
        if node.op in MERGES:  # a loop that is not entered does not come round either
            entries = [
                ref
                for ref in node.data_inputs
                if node_name(ref) not in graph or graph.producer(ref).op not in NEXT_ITERATION
            ]
            gone = all(_is_dead(ref, dead, ways) for ref in entries or node.data_inputs)
        else:
            gone = any(_is_dead(ref, dead, ways) for ref in node.inputs)
        if gone:
            dead.add(node.name)
            waiting.extend(graph.consumers.get(node.name, ()))
    return dead
