"""What a training graph computes only for the numbers of its summaries, such as the share of zeros in a layer."""

from __future__ import annotations

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import node_name
from pocketgraph.graph.op_traits import ops_with

_SUMMARY = "ScalarSummary"
_REDUCTIONS = ops_with("reduction")
"""What makes a number of all that a layer gives."""
_LOOKS_AT = ops_with("passes", "switch", "merge", "order", "difference") | {
    "Cast", "Equal", "NotEqual", "Square", "Abs", "SquaredDifference", "Reshape",
}  # fmt: skip
"""Not a trait: what stands between a layer and its reduction in a count, a mean, a deviation."""
_ARITHMETIC = ops_with("sum", "product", "quotient") | {"Sqrt"}
"""What numbers of reductions go through on their way to a summary."""


def summary_only_nodes(graph: Graph) -> set[str]:
    """The names of nodes whose results go nowhere but into numbers that summaries show.

    A layer that is watched so is none of them, even where nothing else takes it: it may be the answer.
    """
    found: dict[str, bool] = {}  # whether a reduction stands behind it
    waiting = [name for node in graph if node.op == _SUMMARY for name in map(node_name, node.data_inputs)]
    while waiting:
        name = waiting.pop()
        node = graph.nodes.get(name)
        if node is None or name in found:
            continue
        takers = [user for user in graph.consumers.get(name, ()) if name in map(node_name, user.data_inputs)]
        if not all(user.op == _SUMMARY or user.name in found for user in takers):
            continue
        is_reduced = any(user.op in _REDUCTIONS or found.get(user.name, False) for user in takers)
        if node.op not in _REDUCTIONS | _LOOKS_AT | (frozenset() if is_reduced else _ARITHMETIC):
            continue
        found[name] = is_reduced
        waiting += map(node_name, node.data_inputs)
    return set(found)
