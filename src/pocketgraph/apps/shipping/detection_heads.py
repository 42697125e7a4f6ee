"""A detector that selects boxes itself, cut in front of that: devices get the heads, and selecting is the app's.

x ─ Conv2D … ─ BiasAdd (boxes) ─┊─ decoding ─ NonMaxSuppression …
             └ BiasAdd (scores) ─┊─ Sigmoid ─┘
"""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.runtime.unsupported_help import last_layers


def outputs_before_selection(graph: Graph, outputs: Sequence[str]) -> list[str] | None:
    """The outputs that depend on no selection of boxes, and in place of the others the last layers in front of it.

    None where no boxes are selected, or weights would be left out.

    Args:
        graph: the model.
        outputs: what it computes.
    """
    selecting = ops_with("box_selection")
    heads: dict[str, None] = {}
    left = []
    for name in outputs:
        before = reachable(graph, [node_name(name)])
        nodes = [graph[each] for each in sorted(before) if graph[each].op in selecting]
        for node in nodes:
            heads |= dict.fromkeys(last_layers(graph, node))
        left += [] if nodes else [name]
    if not heads:
        return None
    found = [*left, *heads]
    layers = {
        name for name in reachable(graph, [node_name(name) for name in outputs])
        if graph[name].op in ops_with("convolution", "matrix_product")
    }  # fmt: skip
    return found if layers <= reachable(graph, [node_name(name) for name in found]) else None
