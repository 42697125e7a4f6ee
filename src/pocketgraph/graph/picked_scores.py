"""What labels pick from a model's scores, as the loss of a conditional random field does."""

from collections.abc import Collection, Iterable

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node, node_name
from pocketgraph.graph.op_traits import BINARY_SWITCHES, SAME_ELEMENTS
from pocketgraph.graph.order import reachable

_LOOKUPS = frozenset({"Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd"})
"""Not a trait: what takes rows by their indices, its second input."""
_HANDS_ON = SAME_ELEMENTS | BINARY_SWITCHES


def picked_scores(
    graph: Graph, reached: Collection[str], layers: Collection[str], computed: Collection[str]
) -> list[Node]:
    """The nodes whose results a label picks from; none where the source is no label.

    A label takes rows of scores that it had no part in, and of weights no more than rows (the transitions between two
    labels of a conditional random field). What is a model's input goes through a layer instead.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     scores = MatMul(x, weights, T=float)
    ...     flat = Reshape(scores, shape, T=float, Tshape=int32)
    ...     axis = Const(int32 0)
    ...     picked = GatherV2(flat, tags, axis, Tparams=float, Tindices=int32, Taxis=int32)
    ... ''')
    >>> [node.name for node in picked_scores(graph, {"picked"}, {"scores"}, {"scores", "flat"})]
    ['scores']

    Args:
        reached: the names of the nodes that a source reaches.
        layers: those of the nodes that apply weights.
        computed: those of the nodes that weights went into.
    """
    if any(graph[name].op not in _LOOKUPS for name in reached if name in layers):
        return []
    found: dict[str, Node] = {}
    for name in sorted(reached):
        node = graph[name]
        if node.op not in _LOOKUPS or name in layers:
            continue
        scores, index = (node_name(ref) for ref in node.data_inputs[:2])
        if scores in computed and scores not in reached and index not in computed:
            source = graph.find_producer(scores, _HANDS_ON)
            if source is not None:
                found[source.name] = source
    return list(found.values())


def ends_without_normalizer(
    graph: Graph, ends: Iterable[str], after: Collection[str], labelled: Collection[str]
) -> list[str]:
    """The ends that are not computed with what a loss subtracts from the picked scores, such as the logarithm of the
    sum over all sequences.

    Args:
        ends: the names of its ends.
        after: the names of the nodes that the scores reach.
        labelled: those of the nodes that labels reach.
    """
    beside_labels = {node_name(ref) for name in labelled for ref in graph[name].data_inputs}
    compared = beside_labels & {*after} - {*labelled}
    shared = reachable(graph, compared, data_only=True, missing_ok=True) & {*after}
    return [name for name in ends if shared.isdisjoint(reachable(graph, [name], data_only=True, missing_ok=True))]
