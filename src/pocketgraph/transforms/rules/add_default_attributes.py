"""Writes the attributes that nodes leave to their defaults."""

from __future__ import annotations

from pocketgraph.errors import TransformError, did_you_mean
from pocketgraph.graph import AttrValue, Graph, Node, opdefs
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.tool import transform


@transform
def add_default_attributes(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Adds each attribute that a node's op has a default for and the node does not state, for readers that need it.

    Given:   x = Placeholder(dtype=float, shape=<unknown>)
             y = MatMul(x, x, T=float, transpose_b=true)
    Result:  x = Placeholder(dtype=float, shape=<unknown>)
             y = MatMul(x, x, T=float, transpose_b=true, transpose_a=false)

    Attributes that TensorFlow 1.15 does not know are not written for the ops that it knows, so that it still reads the
    graph. Functions of the graph's library count as ops without defaults; their bodies are not changed.

    Differs from the original: an op that is newer than TensorFlow 1.15 gets its defaults, too (there it is an error).

    Raises:
        TransformError: an op is unknown.
    """
    defaults: dict[str, dict[str, AttrValue]] = {}

    def change(node: Node) -> Node:
        if node.op not in defaults:
            defaults[node.op] = _defaults(graph, node, compat)
        missing = {key: value for key, value in defaults[node.op].items() if key not in node.attrs}
        return node.replace(attrs={**node.attrs, **missing}) if missing else node

    return graph.map_nodes(change)


def _defaults(graph: Graph, node: Node, compat: Compat) -> dict[str, AttrValue]:
    if node.op in graph.functions:
        return {}
    found = opdefs.find(node.op)
    if found is None or (compat.original and found.only == opdefs.NEW):
        raise TransformError(
            f"Op type not registered '{node.op}'",
            where=f"node '{node.name}'",
            hint=did_you_mean(node.op, opdefs.names()),
        )
    return found.written_defaults
