"""The part of a graph that its outputs need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pocketgraph.errors import FreezeError, did_you_mean
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.colocation import colocated_with
from pocketgraph.graph.entry_points import unknown_node_hint


def extract_sub_graph(graph: Graph, outputs: Sequence[str]) -> Graph:
    """The nodes that ``outputs`` reach backwards, in the graph's order; functions and versions are kept whole.

    As in the original, a node that another asks to be placed with (``_class = loc:@name``) is kept too, and so is all
    that it needs. Unlike the original, an output may be written with its port (``softmax:0``), and a colocation target
    that does not exist is no error.

    Raises:
        FreezeError: an output is not in the graph, or a needed node has an input that is not.
    """
    kept: set[str] = set()
    waiting = output_nodes(graph, outputs)
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept.add(name)
        node = graph.nodes[name]
        for ref in node.inputs:
            source = node_name(ref)
            if source not in graph.nodes:
                hint = did_you_mean(source, graph.nodes) or "the graph was cut: take the file that it came from"
                raise FreezeError(f"its input '{ref}' is not in the graph", where=f"node '{name}'", hint=hint)
            waiting.append(source)
        waiting.extend(target for target in colocated_with(node) if target in graph.nodes)
    return graph.replace([node for node in graph if node.name in kept])


def output_nodes(graph: Graph, outputs: Iterable[str]) -> list[str]:
    """The node names of outputs; FreezeError for one that is not in the graph."""
    names = []
    for output in outputs:
        name = output if output in graph else node_name(output)
        if name not in graph:
            raise FreezeError(f"{output} is not in graph", hint=unknown_node_hint(graph, name, is_fed=False))
        names.append(name)
    return names
