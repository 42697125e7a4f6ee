"""Turns fake quantization into real one."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import QINT32
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.parts.quantize_passes.code_nodes import dequantize, ports, quantize, requantize

FAKE_QUANT = Pattern("FakeQuantWithMinMaxVars", ["*", "Const", "Const"])


def convert_fake_quants(graph: Graph, twice: set[str], *, any_bits: bool) -> Graph:
    """Replaces FakeQuantWithMinMaxVars by QuantizeV2, Requantize and Dequantize in its range.

    ``merge_adjacent_requantizes`` later takes out the quantizations that come together because of it.

    Args:
        twice: gets the names of nodes that one fake quantization reads as two of value, minimum and maximum.
        any_bits: whether ones of other than eight bits are replaced as well (they have eight bits afterwards).
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        fake = match.node
        source, low, high = (part.node for part in match.inputs)
        wide = quantize(f"{fake.name}_eightbit/quantize", fake.inputs[0], low.name, high.name, QINT32)
        narrow = requantize(f"{fake.name}_eightbit/requantize", ports(wide.name), low.name, high.name)
        parts = [source.name, low.name, high.name]
        twice.update(name for name in parts if parts.count(name) > 1)
        return [source, low, high, wide, narrow, dequantize(fake.name, ports(narrow.name))]

    def accept(match: Match) -> bool:
        return any_bits or match.node.attr("num_bits", 8) == 8

    return replace_matches(graph, FAKE_QUANT, rewrite, accept=accept).graph
