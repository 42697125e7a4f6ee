"""Models that answer otherwise in each run, as they draw random numbers: a dropout that training left on, or noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.passes.dropout_removal import is_noise_of_dropout, without_dropout
from pocketgraph.passes.training_switches import training_switches
from pocketgraph.runtime.unsupported_help import without_dropout_help


def random_nodes(graph: Graph, outputs: Sequence[str]) -> list[str]:
    """The nodes that draw random numbers which outputs are computed from, dropouts being told to keep all where a
    placeholder tells them."""
    if graph.dangling() or not any(node.op in ops_with("random") for node in graph):
        return []
    shares = {name: share for name, share in training_switches(graph).items() if not isinstance(share, bool)}

    def in_use(node: Node) -> Node:
        if node.name in shares:
            return const(node.name, np.float32(shares[node.name]))
        if node.op == "PlaceholderWithDefault" and graph.constant(node.inputs[0]) is not None:
            return Node(node.name, "Identity", node.inputs, {"T": node.attr("dtype", None)})
        return node

    served, _ = without_dropout(graph.map_nodes(in_use), only_noop=True)
    return sorted(name for name in reachable(served, outputs) if served[name].op in ops_with("random"))


def random_note(graph: Graph, outputs: Sequence[str]) -> str:
    """That outputs are others in each run, why, and what helps; "" where they are not."""
    drawn = random_nodes(graph, outputs)
    if not drawn:
        return ""
    if dropped := [name for name in drawn if is_noise_of_dropout(graph, name)]:
        return f"the answers are random: training left a dropout on ('{dropped[0]}'); {without_dropout_help()}"
    return f"the answers are random: '{drawn[0]}' draws other numbers in each run"


def without_dropout_left_on(graph: Graph, outputs: Sequence[str], notify: Callable[[str], None]) -> Graph:
    """The graph without the dropout that training left on, which is told; as it is where there is none."""
    dropped = [name for name in random_nodes(graph, outputs) if is_noise_of_dropout(graph, name)]
    if not dropped:
        return graph
    notify(f"training left a dropout on, which does not ship: {', '.join(map(repr, dropped))}")
    return without_dropout(graph)[0]
