"""Turns fake quantization into real one: its ranges take the place of those that are searched while a graph runs."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import QINT32
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.parts.quantize_passes.code_nodes import dequantize, ports, quantize, requantize

FAKE_QUANT = Pattern("FakeQuantWithMinMaxVars", ["*", "Const", "Const"])
DEPTH = 3  # nodes that a range is moved over at most
RANGE_PRESERVING = frozenset({
    "AvgPool", "CheckNumerics", "Identity", "MaxPool", "Relu", "Relu6", "Snapshot", "Squeeze", "StopGradient",
})  # fmt: skip
"""Not a trait: the original's list of ops whose results lie on the grid and in the range of their input."""
SEARCHED = Pattern("Requantize", ["*", "*", "*", "RequantizationRange", "RequantizationRange"])
ROUND_TRIP_IN_RANGE = Pattern(
    "QuantizeV2", [Pattern("Dequantize", [SEARCHED, "Requantize", "Requantize"]), "Const", "Const"]
)
ADJACENT = Pattern("Requantize", [ROUND_TRIP_IN_RANGE, "QuantizeV2", "QuantizeV2", "Const", "Const"])


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


def merge_adjacent_requantizes(graph: Graph) -> Graph:
    """Replaces Requantize, Dequantize, QuantizeV2, Requantize in a row by the last of them, on the 32-bit values."""

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        again, back_and_forth = match.node, match.inputs[0]
        low, high = match.inputs[3].node, match.inputs[4].node
        source = back_and_forth.inputs[0].inputs[0].inputs[0].node
        return [source, low, high, again.replace(inputs=[*ports(source.name), low.name, high.name])]

    return replace_matches(graph, ADJACENT, rewrite).graph
