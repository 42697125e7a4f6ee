"""Lets a graph be fed with eight-bit values."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT, QUINT8
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.transforms.parts.quantize_passes.code_nodes import dequantize

PENDING = "__RENAMED_PLACEHOLDER__"  # marks the one reference to a placeholder that must not be redirected


def quantize_placeholders(graph: Graph, low: float, high: float, *, any_type: bool) -> Graph:
    """Makes every float ``Placeholder`` one of quint8 values in the range from ``low`` to ``high``.

    A Dequantize behind it gives its readers float values as before.

    Args:
        any_type: do this to placeholders of other types, too (they are float afterwards).
    """
    nodes: list[Node] = []
    readers: dict[str, str] = {}
    for node in graph:
        if node.op != "Placeholder" or not (any_type or node.attr("dtype") is FLOAT):
            nodes.append(node)
            continue
        scope = f"{node.name}_eightbit"
        parts = [const(f"{scope}/min", low, FLOAT), const(f"{scope}/max", high, FLOAT)]
        back = dequantize(f"{scope}/dequantize", [node.name + PENDING, *(part.name for part in parts)])
        readers[node.name] = back.name
        nodes += [node.with_attrs(dtype=QUINT8), *parts, back]
    if not readers:
        return graph
    redirected = rename_inputs(graph.replace(nodes), readers)
    return rename_inputs(redirected, {name + PENDING: name for name in readers})
