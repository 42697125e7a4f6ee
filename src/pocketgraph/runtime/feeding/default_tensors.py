"""Which tensors of a graph are fed and fetched where nobody says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pocketgraph.errors import UsageError, option
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import FEEDS_TRAINING, NO_DEFAULT_PLACEHOLDERS
from pocketgraph.graph.order import reachable
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.feeding.feeds import DEQUEUES, FeedSpec
from pocketgraph.runtime.permissions import RESTRICTED
from pocketgraph.runtime.tensor_names import fetch_endpoint

ASSIGNING = re.compile(r"Assign|(Resource)?(Sparse)?Apply|(Resource)?Scatter(Nd)?(Add|Sub|Update)")


def default_fetches(graph: Graph) -> tuple[str, ...]:
    """The graph's outputs: declared ones, else the likely ones.

    Of several entry points without a default, the first counts that changes nothing and touches no files.

    Raises:
        UsageError: there are none.
    """
    from pocketgraph.graph.entry_points import likely_outputs, sole_outputs

    if graph.outputs:
        return tuple(graph.outputs)
    entries = [tuple(s.outputs.values()) for s in graph.public_signatures.values()]
    if len(entries) > 1:
        return min(entries, key=lambda outputs: side_effects(graph, outputs))
    sole = sole_outputs(graph)
    if sole:
        return tuple(sole)
    found = tuple(name for name, _ in likely_outputs(graph) if not _is_branch(graph, name))
    if not found:
        raise UsageError(
            "no likely output was found in the graph", hint=f"name the outputs, e.g. {option('outputs')}=softmax"
        )
    return found


def side_effects(graph: Graph, outputs: Sequence[str]) -> int:
    """How much computing these would do besides: 0 nothing, 1 change variables, 2 what sessions must allow."""
    from pocketgraph.runtime.engines.functions import FunctionLibrary

    items = needed(graph, (), [fetch_endpoint(graph, name) for name in outputs], ())
    ops = {node.op for node in FunctionLibrary(graph).with_bodies(item.node for item in items.values())}
    return 2 if ops & RESTRICTED else 1 if any(ASSIGNING.match(op) for op in ops) else 0


def _is_branch(graph: Graph, name: str) -> bool:
    """Whether a tensor only says which way a Switch went; such tensors are dead half of the time."""
    node = graph.producer(name)
    if node.op in ("Identity", "Switch", "RefSwitch") and node.data_inputs:
        return node.op != "Identity" or _is_branch(graph, node.data_inputs[0])
    return False


def needed_placeholders(graph: Graph, fetches: Sequence[str]) -> list[str]:
    """The placeholders that these fetches need and that have no constant default."""
    return [spec.label for spec in feed_specs(graph, fetches)]


def feed_specs(graph: Graph, fetches: Sequence[str]) -> list[FeedSpec]:
    """The placeholders without a constant default that these fetches need, and what iterators and queues give them."""
    wanted = [fetch_endpoint(graph, name) for name in fetches]
    items = needed(graph, (), wanted, ())
    names = [name for name, item in items.items() if wants_a_feed(graph, item.node)]
    fed = {Endpoint(name, 0) for name in names if graph[name].op == "PlaceholderWithDefault"}
    if fed:  # what only their defaults need is not needed
        items = needed(graph, frozenset(fed), wanted, ())
    elements = _elements(graph, items)
    if elements:  # nor is what makes these, a data set
        items = needed(graph, frozenset(fed | {spec.endpoint for spec in elements}), wanted, ())
    names = [name for name in names if name in items or Endpoint(name, 0) in fed]
    return [*(FeedSpec.of(graph, Endpoint(name, 0), name) for name in names), *elements]


def _elements(graph: Graph, items: Mapping[str, Item]) -> list[FeedSpec]:
    """What comes out of iterators and queues, where types and shapes are declared: the inputs of a graph that still has
    training's data set."""
    found: dict[Endpoint, FeedSpec] = {}
    for item in items.values():
        for endpoint in item.data:
            node = graph.nodes.get(endpoint.node)
            if node is None or not node.op.startswith(("IteratorGetNext", DEQUEUES)):
                continue
            label = endpoint.node if not endpoint.port else f"{endpoint.node}:{endpoint.port}"
            spec = FeedSpec.of(graph, endpoint, label)
            if spec.dtype is not None and spec.shape.dims is not None:
                found[endpoint] = spec
    return list(found.values())


def wants_a_feed(graph: Graph, node: Node) -> bool:
    """Whether a node is a placeholder without a default, or with one that comes straight from training's input.

    Any other default stays: what lies behind it may be most of the network, as in graphs that were retrained.
    """
    if node.op == "PlaceholderWithDefault":
        before = _ops_of_default(graph, node)
        comes_in = any(op in FEEDS_TRAINING or op.startswith("QueueDequeue") for op in before)
        return comes_in and "PlaceholderWithDefault" not in before
    return node.op in NO_DEFAULT_PLACEHOLDERS


def is_cached_layer(graph: Graph, node: Node) -> bool:
    """Whether a node is a placeholder whose default is a layer of the network: other placeholders lead to it.

    Retrained graphs have such: what comes before it is the network, and training fed its result from a cache. What
    comes out of an iterator or a queue is no layer.
    """
    from pocketgraph.graph.weight_reach import PIPELINES

    if node.op != "PlaceholderWithDefault" or not node.data_inputs:
        return False
    ops = _ops_of_default(graph, node)
    return not ops.isdisjoint(NO_DEFAULT_PLACEHOLDERS) and not any(map(PIPELINES.match, ops))


def _ops_of_default(graph: Graph, node: Node) -> set[str]:
    """The ops that compute a placeholder's default."""
    return {graph[name].op for name in reachable(graph, list(node.data_inputs))}
