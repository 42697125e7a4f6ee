"""Scores of actions of a policy that explores: the best one is picked, and a random number may overrule the pick."""

from collections.abc import Iterable

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node
from pocketgraph.graph.op_traits import RANDOM
from pocketgraph.graph.order import reachable


def gives_random_numbers(node: Node) -> bool:
    """Whether a node draws random numbers."""
    return node.op in RANDOM or node.op.startswith("StatelessRandom")


def greedy_scores(graph: Graph, names: Iterable[str]) -> Node | None:
    """What the best is picked from in front of nodes that draw random numbers or come from some; None where nothing is
    picked, or the scores themselves come from random numbers.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     scores = Placeholder(dtype=float)
    ...     axis = Const(int32 1)
    ...     best = ArgMax(scores, axis, T=float)
    ...     size = Const(int32[1] [1])
    ...     chance = RandomUniform(size, T=int32, dtype=float)
    ...     most = Const(float 0.1)
    ...     explores = Less(chance, most, T=float)
    ...     other = Const(int64[1] [0])
    ...     action = Select(explores, other, best, T=int64)
    ... ''')
    >>> greedy_scores(graph, ["action"]).name
    'scores'
    """
    before = reachable(graph, names, data_only=True, missing_ok=True)
    if not any(gives_random_numbers(graph[name]) for name in before if name in graph):
        return None
    for node in graph:
        if node.name in before and node.op == "ArgMax":
            behind = reachable(graph, node.data_inputs[:1], data_only=True, missing_ok=True)
            if not any(gives_random_numbers(graph[name]) for name in behind):
                return graph.find_producer(node.data_inputs[0])
    return None
