"""Inlines calls and takes decided branches out until nothing changes any more."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.freezing.binding import without_known_branches
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.graph import Graph
from pocketgraph.passes.inlining import ControlFlow, inlined


def with_decided_branches(graph: Graph, outputs: Sequence[str], control_flow: ControlFlow) -> Graph:
    """The part that ``outputs`` need once calls are inlined and every branch that is decided before the run is taken.

    One may decide the other: an inlined function holds a Switch, and a Merge that is gone a predicate.

    Raises:
        FreezeError: see inline.inlined and binding.without_known_branches.
    """
    while True:
        before = graph
        graph = extract_sub_graph(inlined(graph, outputs, control_flow), outputs)
        graph = extract_sub_graph(without_known_branches(graph), outputs)
        if graph.nodes.keys() == before.nodes.keys():
            return graph
