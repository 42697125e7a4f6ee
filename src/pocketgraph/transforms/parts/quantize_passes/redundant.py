"""Connects eight-bit operations directly where values went to float and back between them."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.edit import rename_inputs, replace_matches
from pocketgraph.graph.pattern import Match, Pattern

ROUND_TRIP = Pattern("QuantizeV2", ["Dequantize", "Min", "Max"])


def remove_redundant_quantizations(graph: Graph, *, unproved: bool) -> Graph:
    """Lets what reads ``QuantizeV2(Dequantize(x, low, high), Min(…), Max(…))`` read ``x``, ``low`` and ``high``.

    What stood between stays where something else refers to the float values; strip_unused_nodes takes out the rest.

    Args:
        unproved: do not look whether both have the same type and mode and whether the range is that of the values.
    """
    outputs = {node_name(ref) for ref in graph.outputs}
    kept = outputs | {node_name(ref) for node in graph for ref in node.inputs if ref.startswith("^")}
    renames: dict[str, str] = {}

    def accept(match: Match) -> bool:
        return unproved or _undoes(graph, match)

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        back = match.inputs[0].node
        renames.update({f"{match.node.name}:{port}": back.inputs[port] for port in range(3)})
        if unproved:
            return list(match.nodes) if back.name in used | outputs else []
        needed = {node.name for node in match.nodes[1:]} & used or {node.name for node in match.nodes} & kept
        return list(match.nodes) if needed else []

    replaced = replace_matches(graph, ROUND_TRIP, rewrite, accept=accept, may_lose_names=True)
    return rename_inputs(replaced.graph, renames)


def _undoes(graph: Graph, match: Match) -> bool:
    """Whether the quantization gives back what the Dequantize was given."""
    forth, back = match.node, match.inputs[0].node
    if any(forth.attr(key) != back.attr(key) for key in ("T", "mode")) or len(back.data_inputs) != 3:
        return False
    for extreme in (match.inputs[1].node, match.inputs[2].node):
        values = graph.nodes.get(node_name(extreme.inputs[0]))
        if values is not None and values.op == "Reshape":
            values = graph.nodes.get(node_name(values.inputs[0]))
        if values is not back:
            return False
    return True
