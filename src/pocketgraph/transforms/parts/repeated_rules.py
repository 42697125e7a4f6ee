"""Runs a list of rules again and again until they change nothing more, a limited number of times."""

from __future__ import annotations

import logging

from pocketgraph.graph import Graph
from pocketgraph.transforms import tool

MOST_ROUNDS = 5  # real models are done after two; a list that never settles stops here
log = logging.getLogger("pocketgraph.transforms")


def until_settled(graph: Graph, transforms: str) -> Graph:
    """The graph after as many rounds of these transforms as change something, and no more than MOST_ROUNDS."""
    for _ in range(MOST_ROUNDS):
        before = _form(graph)
        graph = tool.run(graph, transforms)
        if _form(graph) == before:
            break
    else:
        log.info("stopped after %d rounds, though the last one still changed something", MOST_ROUNDS)
    return graph


def _form(graph: Graph) -> list[tuple[str, str, tuple[str, ...]]]:
    """What the rules change: names, ops and inputs, in order of names (two rules may sort in two ways)."""
    return sorted((node.name, node.op, node.inputs) for node in graph)
