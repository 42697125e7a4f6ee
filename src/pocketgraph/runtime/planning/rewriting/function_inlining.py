"""Puts TensorFlow 2's functions, branches and loops into the graph, as TensorFlow 1's control flow, before planning.

TensorFlow does the same before it runs such a graph. All that is done for frames and branches is then done for
functions too: loops of known length are written out, and the heavy parts of the others are compiled, with the weights
that enter a loop once as constants.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import RANDOM
from pocketgraph.runtime.engines.functions import COUNTED, REMOTE, FunctionLibrary
from pocketgraph.runtime.engines.needed import Item

"""Ops with state that nobody misses when their result is not needed."""

MOST_NODES = 200_000
"""Nodes that inlining may make, some seconds of planning; functions that call each other may stand for any number."""


def inline_calls(graph: Graph, items: Mapping[str, Item], fed: Collection[Endpoint], kept: Collection[str]) -> Graph:
    """The needed part of the graph without calls; ``graph`` itself where there are none, or where one has to stay.

    Calls stay where a function has effects besides its results (assignments, assertions, printing), where a function
    calls itself, where the result of a call is fed, and where their bodies would make more nodes than MOST_NODES.

    Args:
        items: its needed nodes.
        fed: the tensors that are fed.
        kept: nodes that are fetched or targets; they keep their names.
    """
    library = FunctionLibrary(graph)
    calls = [item.node for item in items.values() if library.is_call(item.node)]
    given = {endpoint.node for endpoint in fed}
    if not calls or any(node.name in given for node in calls):
        return graph
    if not all(_may_move(node, library) for node in library.with_bodies(calls)):
        return graph
    from pocketgraph.passes.inlining import inlined  # only graphs with functions need it

    if library.inlined_nodes(calls) > MOST_NODES:
        return graph
    needed = graph.replace([node for node in graph if node.name in items or node.name in given])
    try:
        return inlined(needed, sorted({*kept, *given}), "lower")
    except PocketgraphError:
        return graph  # it recurses, or is damaged where no run may come


def _may_move(node: Node, library: FunctionLibrary) -> bool:
    from pocketgraph.graph import opdefs

    if library.is_call(node):
        return node.op not in (REMOTE, COUNTED)
    return not opdefs.is_stateful(node.op) or node.op in RANDOM
