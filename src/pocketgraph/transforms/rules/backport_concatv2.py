"""Replaces ConcatV2, for runtimes that know only Concat."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.matchable import matchable
from pocketgraph.transforms.tool import transform


@transform
def backport_concatv2(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Makes ``Concat`` of each ``ConcatV2``, whose axis comes last instead of first.

    Given:   a = Placeholder(dtype=float)
             axis = Const(int32 3)
             y = ConcatV2(a, a, axis, N=2, T=float, Tidx=int32)
    Result:  a = Placeholder(dtype=float)
             axis = Const(int32 3)
             y = Concat(axis, a, a, N=2, T=float)

    Differs from the original: control inputs stay behind the others (there, the last one gets to the front).
    """

    may_match = matchable(graph, compat)

    def change(node: Node) -> Node:
        if node.op != "ConcatV2" or not may_match(node):
            return node
        moved = node.inputs if compat.original else node.data_inputs
        inputs = (*moved[-1:], *moved[:-1], *node.inputs[len(moved) :])
        return node.with_attrs(Tidx=None).replace(op="Concat", inputs=inputs)

    return graph.map_nodes(change)
