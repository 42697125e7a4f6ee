"""A model that chooses from its answers itself, cut in front of that: devices get the answers, choosing is the app's.

x ─ Conv2D … ─ BiasAdd ─ Reshape (boxes) ─┊─ decoding ─ NonMaxSuppression …
             └ BiasAdd ─ Sigmoid (scores) ┊─┘

x ─ LSTM … ─ BiasAdd (labels of each step) ─┊─ CTCBeamSearchDecoder …
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.op_traits import CONTRACTIONS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.runtime.unsupported_help import heads_before


def outputs_before_selection(graph: Graph, outputs: Sequence[str]) -> list[str] | None:
    """The outputs that depend on no selection of boxes and no decoder of sequences, and in place of the others what
    the last layers in front of the selection give, or what the decoder takes.

    None where nothing is selected, or weights would be left out.
    """
    selecting = ops_with("box_selection", "sequence_decoding")
    heads: dict[str, None] = {}
    left = []
    for name in outputs:
        before = reachable(graph, [node_name(name)])
        nodes = [graph[each] for each in sorted(before) if graph[each].op in selecting]
        for node in nodes:
            heads |= dict.fromkeys(heads_before(graph, node))
        left += [] if nodes else [name]
    if not heads:
        return None
    found = [*left, *heads]
    layers = {
        name for name in reachable(graph, [node_name(name) for name in outputs])
        if graph[name].op in CONTRACTIONS
    }  # fmt: skip
    return found if layers <= reachable(graph, [node_name(name) for name in found]) else None


def choice_words(graph: Graph, outputs: Sequence[str]) -> str:
    """What outputs are chosen by, in words."""
    needed = reachable(graph, [node_name(name) for name in outputs])
    is_selection = any(graph[name].op in ops_with("box_selection") for name in needed)
    return "selection of boxes" if is_selection else "decoder of sequences"
