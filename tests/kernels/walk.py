"""Runs a graph without control flow node by node through the kernels, and says which ops have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, canonical, parse_ref
from pocketgraph.kernels import Context, evaluate, registry

CONTROL_FLOW = frozenset(("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"))


def missing(graph: Graph) -> set[str]:
    """The ops of a graph that no kernel computes, those of control flow and placeholders left out."""
    return {n.op for n in graph if n.op not in registry.KERNELS} - CONTROL_FLOW - {"Placeholder"}


def run(graph: Graph, fetches: Iterable[str], feeds: Mapping[str, Any]) -> list[Any]:
    """The values of the fetches, each node computed once, on what is fed."""
    values = {canonical(name): value for name, value in feeds.items()}
    state: dict[str, Any] = {}
    done: set[str] = set()
    wanted = [canonical(name) for name in fetches]
    stack = [parse_ref(name).name for name in wanted if name not in values]
    while stack:
        node = graph[stack[-1]]
        if node.name in done:
            stack.pop()
            continue
        inputs = [canonical(ref) for ref in node.data_inputs]
        ahead = [parse_ref(ref).name for ref in inputs if ref not in values]
        if ahead:
            stack.extend(ahead)
            continue
        results = evaluate(node, [values[ref] for ref in inputs], Context(node, state, {}, np.random.default_rng(1)))
        for port, value in enumerate(results):
            values.setdefault(f"{node.name}:{port}", value)
        done.add(node.name)
        stack.pop()
    return [values[name] for name in wanted]
