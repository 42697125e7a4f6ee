"""Finds in a training graph what one network makes and another one judges: the pictures of a generator."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.groups import closure
from pocketgraph.graph.node import Node, node_name
from pocketgraph.graph.op_traits import SOURCES, VARIABLES
from pocketgraph.graph.order import reachable

_GENERATOR = re.compile(r"(g|gen|generator)$", re.I)
_JUDGE = re.compile(r"(d|disc|discriminator|critic)(_\d+)?$", re.I)
_UPDATES = re.compile(r"(Resource|Sparse|ResourceSparse)?Apply[A-Z]")


def generated(graph: Graph, layers: Collection[Node], weights: Collection[str], behind: Collection[str]) -> list[str]:
    """The nodes that give what a judge takes.

    A judge is a network that is applied both to what comes into the graph and to what other weights made, which another
    step of training updates: a discriminator, a critic, a network of features that a loss compares. What it says trains
    what made them: a classifier behind a denoiser that learns from clean pictures alone is no judge. Where nothing
    tells the steps of training, the scopes' names do.

    Args:
        graph: a training graph.
        layers: its nodes that apply weights to something.
        weights: the names of nodes whose value is weights.
        behind: the names of the nodes that weights went into.
    """
    found = dict.fromkeys(_by_name(graph))
    trainers = _trainers(graph)
    for variable, (taking_inputs, taking_results) in _applied(graph, layers, weights, behind).items():
        judge = trainers.get(variable, set())
        for result in taking_results:
            for name in _counterparts(graph, result, taking_inputs, behind):
                before = reachable(graph, [name], data_only=True, missing_ok=True)
                makers = [other for other in before if trainers.get(other)]
                if variable in before or not makers or not all(judge.isdisjoint(trainers[other]) for other in makers):
                    continue
                if variable in reachable(graph, _updates(graph, makers), data_only=True, missing_ok=True):
                    found.setdefault(name)
    applied = {node.name for node in layers}
    return [name for name in found if not _is_mixed(graph, name, found, applied)]


def _applied(
    graph: Graph, layers: Collection[Node], weights: Collection[str], behind: Collection[str]
) -> dict[str, tuple[list[str], list[str]]]:
    """Of each variable that one kind of layer applies to both, at the same place among its inputs (the scale of a batch
    norm is no picture): the values that no weight went into, constants aside, and those that some did."""
    found: dict[tuple[str, str, int], tuple[list[str], list[str]]] = {}
    for node in layers:
        taken = [node_name(ref) for ref in node.data_inputs]
        variables = {_variable_of(graph, name) for name in taken if name in weights} - {""}
        for place, name in enumerate(taken):
            if name not in weights and (name not in graph or graph[name].op != "Const"):
                for variable in variables:
                    found.setdefault((variable, node.op, place), ([], []))[name in behind].append(name)
    return {variable: both for (variable, _, _), both in found.items() if all(both)}


def _variable_of(graph: Graph, name: str) -> str:
    """The variable that a node reads, "" where it is a constant's value."""
    node = graph.nodes.get(name)
    while node is not None and node.op not in VARIABLES:
        if not node.data_inputs:
            return ""
        node = graph.find_producer(node.data_inputs[0])
    return node.name if node is not None else ""


def _trainers(graph: Graph) -> dict[str, set[str]]:
    """The steps of training that update a variable, of each: the groups of an optimizer's updates."""
    found: dict[str, set[str]] = {}
    for node in graph:
        if _UPDATES.match(node.op) and node.data_inputs:
            steps = {user.name for user in graph.consumers.get(node.name, ()) if user.op == "NoOp"}
            found.setdefault(node_name(node.data_inputs[0]), set()).update(steps)
    return found


def _updates(graph: Graph, variables: Collection[str]) -> list[str]:
    """The nodes in which an optimizer updates any of some variables."""
    users = (user for name in variables for user in graph.consumers.get(name, ()))
    return [user.name for user in users if _UPDATES.match(user.op)]


def _counterparts(graph: Graph, result: str, inputs: list[str], behind: Collection[str]) -> Iterator[str]:
    """Where what was made first differs from what came in: in front of what the judge does to both, such as a
    concatenation with a label."""
    waiting, seen = [(result, name) for name in inputs], set()
    while waiting:
        pair = waiting.pop()
        made, given = (graph.nodes.get(name) for name in pair)
        if pair in seen or made is None or given is None or made is given or made.name not in behind:
            continue
        seen.add(pair)
        ways = [[node_name(ref) for ref in node.data_inputs] for node in (made, given)]
        if made.op == given.op and given.op not in SOURCES and len(ways[0]) == len(ways[1]):
            waiting += zip(*ways, strict=True)
        else:
            yield made.name


def _is_mixed(graph: Graph, name: str, found: Collection[str], layers: Collection[str]) -> bool:
    """Whether a node only computes with what another one makes, without weights, as a penalty of gradients does."""

    def inputs(name: str) -> Iterable[str]:
        return map(node_name, graph[name].data_inputs)

    before = closure(inputs(name), inputs, lambda name: name in found or (name not in layers and name in graph))
    return any(each in found for each in before)


def _by_name(graph: Graph) -> Iterator[str]:
    scopes = {name.partition("/")[0] for name in graph.nodes if "/" in name}
    generators = {scope for scope in scopes if _GENERATOR.match(scope)}
    if not generators or not any(map(_JUDGE.match, scopes)):
        return
    for name in graph.nodes:
        users = graph.consumers.get(name, ())
        if name.partition("/")[0] in generators and any(_JUDGE.match(user.name.partition("/")[0]) for user in users):
            yield name
