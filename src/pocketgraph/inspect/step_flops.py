"""Counts the operations of one step: what the graph's own nodes cost, as often as they run, on whatever engine."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.formats.meta_graph import saved_model_file
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.op_traits import FUNCTION_CALLS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.inspect.flops import Flops, count_graph
from pocketgraph.passes.inlining import inlined

REPEATED = ops_with("enter", "switch")
"""Where these are, only a run tells how often a node runs."""


def count_step(
    graph: Graph, feeds: Mapping[str, np.ndarray[Any, Any]], fetches: Sequence[str], targets: Sequence[str] = ()
) -> Flops:
    """The operations of one run.

    Functions are counted where they are called. A graph with loops or branches, or with shapes that do not follow from
    the feeds, runs once on the reference engine, which computes every node as the graph has it: the nodes of a fast
    engine are others, as it writes loops out and makes several operations of one node.

    Args:
        feeds: what goes in, by tensor name.
        fetches: tensors.
        targets: nodes that run as well.
    """
    wanted = [*fetches, *targets]
    if any(node.op in FUNCTION_CALLS or node.op in graph.functions for node in graph):
        with contextlib.suppress(PocketgraphError):  # a call that stays is named among what is not counted
            graph = inlined(graph, wanted, control_flow="lower")
    fed = {node_name(name) for name in feeds}
    needed = reachable(graph, [node_name(name) for name in wanted], stop=fed)
    nodes = [node for node in graph if node.name in needed and node.name not in fed]
    shapes = {name: array.shape for name, array in feeds.items()}
    found = count_graph(graph, shapes, nodes)
    if not found.unknown and not any(node.op in REPEATED for node in nodes):
        return found
    trace = _traced(graph, feeds, fetches, targets)
    if trace is None:
        return found
    seen = {f"{node.name}:{port}": shape for node in trace.nodes for port, (_, shape) in enumerate(node.outputs)}
    times = Counter(node.name for node in trace.nodes)
    ran = [node for node in nodes if times[node.name]]
    return count_graph(graph, shapes, ran, seen, {name: count for name, count in times.items() if count > 1})


def _traced(graph: Graph, feeds: Mapping[str, Any], fetches: Sequence[str], targets: Sequence[str]) -> Any:
    """A traced run on the reference engine; None when the graph does not run by itself."""
    from pocketgraph.runtime import Session

    try:
        with Session(graph, engine="reference") as session:
            if graph.source and saved_model_file(graph.source) is not None:
                session.restore(graph.source)
            return session.profile(list(fetches), dict(feeds), targets=tuple(targets))
    except PocketgraphError:
        return None
