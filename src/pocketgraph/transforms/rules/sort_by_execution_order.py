"""Puts the nodes in an order in which they can run."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.graph.order import iter_topological
from pocketgraph.transforms.tool import transform


@transform
def sort_by_execution_order(graph: Graph) -> Graph:
    """Orders the nodes so that each comes after its inputs, for readers that go through the file once.

    Given:   y = Relu(x, T=float)
             x = Placeholder(dtype=float)
    Result:  x = Placeholder(dtype=float)
             y = Relu(x, T=float)

    Raises:
        GraphError: an input names a node that is not there; or nodes form a cycle that is no while-loop.
    """
    return graph.reorder(iter_topological(graph))
