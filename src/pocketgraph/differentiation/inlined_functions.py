"""Functions of TensorFlow 2: their bodies take the place of the calls before anything is differentiated."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.graph import Graph
from pocketgraph.passes.inlining import inlined


def without_calls(graph: Graph, names: Iterable[str]) -> Graph:
    """The graph without calls, conditionals and loops in the form of TensorFlow 1; itself where it has no functions.

    Args:
        graph: a graph.
        names: tensors that keep their names, besides the inputs and outputs of the graph.

    Raises:
        FreezeError, FormatError, GraphError: a function is missing, damaged or calls itself.
    """
    if not graph.functions:
        return graph
    wanted = [name for name in (*names, *graph.inputs, *graph.outputs) if name.partition(":")[0] in graph]
    return inlined(graph, wanted, "lower")
