"""Lets trained ranges take the place of ranges that are searched while the graph runs."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.parts.quantize_passes.code_nodes import ports

SEARCHED = Pattern("Requantize", ["*", "*", "*", "RequantizationRange", "RequantizationRange"])
BACK_AND_FORTH = Pattern(
    "QuantizeV2", [Pattern("Dequantize", [SEARCHED, "Requantize", "Requantize"]), "Const", "Const"]
)
ADJACENT = Pattern("Requantize", [BACK_AND_FORTH, "QuantizeV2", "QuantizeV2", "Const", "Const"])


def merge_adjacent_requantizes(graph: Graph) -> Graph:
    """Replaces Requantize, Dequantize, QuantizeV2, Requantize in a row by the last of them, on the 32-bit values."""

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        again, back_and_forth = match.node, match.inputs[0]
        low, high = match.inputs[3].node, match.inputs[4].node
        source = back_and_forth.inputs[0].inputs[0].inputs[0].node
        return [source, low, high, again.replace(inputs=[*ports(source.name), low.name, high.name])]

    return replace_matches(graph, ADJACENT, rewrite).graph
