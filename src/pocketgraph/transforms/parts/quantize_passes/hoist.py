"""Moves a trained range up to the operation that needs it."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern

DEPTH = 3  # nodes that a range is moved over at most
RANGE_PRESERVING = frozenset({
    "AvgPool", "CheckNumerics", "Identity", "MaxPool", "Relu", "Relu6", "Snapshot", "Squeeze", "StopGradient",
})  # fmt: skip
"""Not a trait: the original's list of ops whose results lie on the grid and in the range of their input."""


def hoist_fake_quants(graph: Graph, *, over_any_op: bool) -> Graph:
    """Moves FakeQuantWithMinMaxVars in front of the up to three operations that stand between it and the one before.

    ``BiasAdd → Relu → MaxPool → FakeQuant`` becomes ``BiasAdd → FakeQuant → Relu → MaxPool``, and the last operation
    gets the fake quantization's name.

    Args:
        over_any_op: move over every operation with one data input, rather than only those that preserve a range, and
            over outputs of the graph, too.
    """
    outputs = {node_name(ref) for ref in graph.outputs}

    for depth in range(DEPTH, 0, -1):

        def accept(match: Match, depth: int = depth) -> bool:
            chain = _chain(match, depth)[:-1]
            return over_any_op or (all(node.op in RANGE_PRESERVING for node in chain) and chain[0].name not in outputs)

        def rewrite(match: Match, used: frozenset[str], depth: int = depth) -> list[Node]:
            fake, low, high = match.node, match.inputs[1].node, match.inputs[2].node
            chain = _chain(match, depth)
            first = chain[-2]  # the deepest of the operations that it is moved over
            hoisted = fake.replace(name=f"{fake.name}_hoisted", inputs=[first.inputs[0], *fake.inputs[1:]])
            chain[-2] = first.replace(inputs=[hoisted.name, *first.inputs[1:]])
            chain[0] = chain[0].replace(name=fake.name)
            return [hoisted, low, high, *chain]

        graph = replace_matches(graph, _pattern(depth), rewrite, accept=accept).graph
    return graph


def _pattern(depth: int) -> Pattern:
    chain = Pattern("*")
    for _ in range(depth):
        chain = Pattern("*", [chain])
    return Pattern("FakeQuantWithMinMaxVars", [chain, "Const", "Const"])


def _chain(match: Match, depth: int) -> list[Node]:
    """The operations that a fake quantization is moved over, the nearest first, and then what these read."""
    found = []
    for _ in range(depth + 1):
        match = match.inputs[0]
        found.append(match.node)
    return found
