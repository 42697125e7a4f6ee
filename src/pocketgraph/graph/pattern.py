"""Describes a small sub-graph as data and finds where a graph contains it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

from pocketgraph.errors import GraphError
from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node, node_name
from pocketgraph.graph.order import is_topological, topological


class Pattern:
    """An op, or several, and what produces its data inputs.

    ``Pattern("Mul", [Pattern("Conv2D|MatMul", ["*", Pattern("Const", name="weights")]), "Const"])`` is a multiplication
    of a convolution's or a matrix product's result by a constant. A plain string is a pattern without inputs and
    without a name.

    Attributes:
        ops: the op types that fit; None when any does (``*``).
        inputs: one pattern for each data input, in order; empty when the inputs do not matter.
        name: the key under which ``Match.nodes`` gives the node, or "".
    """

    __slots__ = ("inputs", "name", "ops")

    def __init__(self, op: str, inputs: Sequence[Pattern | str] = (), *, name: str = "") -> None:
        """``op`` is one op type, several separated by ``|``, or ``*``."""
        self.ops: frozenset[str] | None = None if op == "*" else frozenset(op.split("|"))
        self.inputs = tuple(Pattern(item) if isinstance(item, str) else item for item in inputs)
        self.name = name

    def __repr__(self) -> str:
        op = "*" if self.ops is None else "|".join(sorted(self.ops))
        return f"{op}({', '.join(map(repr, self.inputs))})" if self.inputs else op


class Match:
    """A node that fits a pattern, with the matches of its inputs.

    Attributes:
        pattern: what it fits.
        node: the node itself, the head.
        inputs: one match for each input of the pattern.
    """

    __slots__ = ("__dict__", "inputs", "node", "pattern")

    def __init__(self, pattern: Pattern, node: Node, inputs: tuple[Match, ...] = ()) -> None:
        self.pattern = pattern
        self.node = node
        self.inputs = inputs

    def __getitem__(self, name: str) -> Node:
        """The node that fits the part of the pattern with this name."""
        return self.named[name]

    @cached_property
    def named(self) -> dict[str, Node]:
        """The nodes of the named parts of the pattern."""
        return {match.pattern.name: match.node for match in self._levels if match.pattern.name}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every matched node once, level by level from the head."""
        return tuple({match.node.name: match.node for match in self._levels}.values())

    @cached_property
    def _levels(self) -> list[Match]:
        found = [self]
        for match in found:
            found.extend(match.inputs)
        return found


def find_matches(graph: Graph, pattern: Pattern, accept: Callable[[Match], bool] | None = None) -> list[Match]:
    """Where a graph contains a pattern, in any order.

    A node belongs to one match at most, leaves included: of two places that share a node (even a constant) only the
    first in topological order is found. Within a match the same node may stand for several parts. Control inputs and
    output ports do not matter to a match, and inputs are compared in order, so ``Mul(a, b)`` does not fit a pattern for
    ``Mul(b, a)``. Where the graph has a cycle, only nodes outside it are found; with a dangling input, none. A match
    that ``accept`` refuses is no match, and its nodes are free for others.
    """
    ops = pattern.ops
    heads = None if ops is None else [node for node in graph if node.op in ops]
    if heads is not None and not pattern.inputs:  # nothing can overlap, so the order does not matter
        found = [Match(pattern, node) for node in heads]
        return found if accept is None else [match for match in found if accept(match)]
    if heads is not None:  # often the order, which costs more than all the rest, makes no difference
        candidates = [match for node in heads if (match := fit(node, pattern, graph.nodes)) is not None]
        if not candidates:
            return []
        if _are_apart(candidates) and is_topological(graph):
            return candidates if accept is None else [match for match in candidates if accept(match)]
    try:
        order = topological(graph, partial=True)
    except GraphError:
        return []
    nodes = graph.nodes if len(order) == len(graph) else {node.name: node for node in order}
    claimed: set[str] = set()
    matches = []
    for node in order:
        if ops is None or node.op in ops:
            match = fit(node, pattern, nodes, claimed)
            if match is not None and (accept is None or accept(match)):
                matches.append(match)
                claimed.update(member.name for member in match.nodes)
    return matches


def _are_apart(matches: list[Match]) -> bool:
    """Whether no two matches share a node."""
    seen: set[str] = set()
    for match in matches:
        for node in match.nodes:
            if node.name in seen:
                return False
            seen.add(node.name)
    return True


def fit(node: Node, pattern: Pattern, nodes: Mapping[str, Node], claimed: Collection[str] = ()) -> Match | None:
    """How a node fits a pattern; None where it does not, or where what it needs is claimed."""
    if node.name in claimed or (pattern.ops is not None and node.op not in pattern.ops):
        return None
    if not pattern.inputs:
        return Match(pattern, node)
    sources = node.data_inputs
    if len(sources) != len(pattern.inputs):
        return None
    inputs = []
    for ref, wanted in zip(sources, pattern.inputs, strict=True):
        source = nodes.get(node_name(ref))
        match = None if source is None else fit(source, wanted, nodes, claimed)
        if match is None:
            return None
        inputs.append(match)
    return Match(pattern, node, tuple(inputs))
