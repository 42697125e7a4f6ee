"""Which dilations that are written as batches hold for all sizes.

x [1, ?, 8] ─ SpaceToBatchND [[0, rest]] ─ Conv2D ─ BatchToSpaceND [[0, rest]]      rest: what the length lacks

What is added behind the last step depends on the length, and as much is cut off again: a convolution that is dilated
itself needs none of it, and LiteRT is given one (``litert/rewriting/padding_and_dilation.py``).
"""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.op_traits import CONVOLUTIONS
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.planning.sizes.size_terms import SizeTerms


def is_open_dilation(node: Node, graph: Graph, inferred: Inferred) -> bool:
    """Whether a node is one end of a dilation, or may be its first, whose borders are the same for all sizes.

    Args:
        node: a SpaceToBatchND or BatchToSpaceND.
        graph: its graph.
        inferred: what is known of that while sizes are open.
    """
    if not _starts_are_known(node, inferred):
        return False
    if node.op == "SpaceToBatchND":
        return True
    first = _first(node, graph)
    if first is None or not _starts_are_known(first, inferred):
        return False
    blocks = [inferred.elements(canonical(each.data_inputs[1])) or [] for each in (first, node)]
    added, taken_off = (canonical(each.data_inputs[2]) for each in (first, node))
    terms = SizeTerms(graph, inferred)
    places = range(1, 2 * len(blocks[0]), 2)
    return blocks[0] == blocks[1] and all(
        terms.of(added, place)[:2] == terms.of(taken_off, place)[:2] for place in places
    )


def _starts_are_known(node: Node, inferred: Inferred) -> bool:
    """Whether the block sizes are, and what is added or cut off in front."""
    _, block, borders = map(canonical, node.data_inputs)
    numbers = inferred.elements(borders)
    return inferred.value(block) is not None and numbers is not None and None not in numbers[::2]


def _first(last: Node, graph: Graph) -> Node | None:
    """The SpaceToBatchND before a convolution before this node; one along a line has Conv1D's axis of size 1."""
    convolution = _source(last, graph, "Squeeze")
    first = _source(convolution, graph, "ExpandDims") if convolution.op in CONVOLUTIONS else None
    return first if first is not None and first.op == "SpaceToBatchND" else None


def _source(node: Node, graph: Graph, passed: str) -> Node:
    source = graph.nodes[node_name(node.inputs[0])]
    return _source(source, graph, passed) if source.op == passed else source
