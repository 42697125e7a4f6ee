"""Makes one constant of many equal ones: exporters write an axis, a size or a half anew at each place that uses it."""

from __future__ import annotations

from collections.abc import Collection

from pocketgraph.graph import Graph, node_name
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.engines.compilation_units import Plan


def deduplicate_constants(graph: Graph, plan: Plan, inferred: Inferred, held: Collection[str]) -> Graph:
    """The graph in which all read the first of the small constants that are equal; the same graph if none are.

    Equal are those of the same type, shape and elements, in the same loop, that wait for the same nodes. The others
    stay in the graph, but nobody needs them.

    Args:
        plan: its needed nodes.
        inferred: types and values of its tensors.
        held: nodes that are fed, fetched or targets; they are left alone.
    """
    first: dict[object, str] = {}
    instead: dict[str, str] = {}
    for name in plan.items:
        node = graph.nodes[name]
        if node.op != "Const" or name in held:
            continue
        value, dtype = inferred.value(f"{name}:0"), inferred.dtype(f"{name}:0")
        if value is None or dtype is None:
            continue
        key = (id(plan.frames[name]), node.inputs, dtype.number, value.shape, value.tobytes())
        kept = first.setdefault(key, name)
        if kept != name:
            instead[name] = kept
    if not instead:
        return graph

    def source(text: str) -> str:
        kept = instead.get(node_name(text))
        return text if kept is None else f"^{kept}" if text.startswith("^") else kept

    changed = {}
    named = {text for name in instead for text in (name, f"{name}:0", f"^{name}")}
    for name in plan.items:
        node = graph.nodes[name]
        if not named.isdisjoint(node.inputs):
            changed[name] = node.replace(inputs=[source(text) for text in node.inputs])
    return graph.replace([changed.get(node.name, node) for node in graph])
