"""Masks the gradient of a rectifier behind a max pool where it is small: at the pool's result.

    given   dp -> MaxPoolGrad(y, p) -> ReluGrad(y) -> BiasAddGrad
    result  dp -> ReluGrad(p) -> MaxPoolGrad(y, p), and BiasAddGrad of what the rectifier's gradient gives

The pool's gradient goes to pixels that are as large as its result ``p``, so that both masks are the same, and each
gradient goes to one pixel, so that the sums are. Layers that run as a step (engines/trained_layers.py) mask themselves.
"""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.attr import POOLING
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.runtime.planning.graph_state import GraphState, static_nodes
from pocketgraph.runtime.planning.numpy_gradients import layers_sooner_in_numpy

MASKS = ("ReluGrad", "Relu6Grad")
"""Gradients that are kept or become zero, by the value at their place."""


def with_masks_at_pools(state: GraphState) -> Graph:
    """The graph with masks at the pools' results; the same graph where there are none to move.

    Args:
        state: the graph, and what is fed and fetched of it.
    """
    graph, nodes = state.graph, state.graph.nodes
    static = static_nodes(state.plan)
    masked = layers_sooner_in_numpy(state.plan, state.held, state.inferred, static, state.without)
    changed: dict[str, Node] = {}
    added: dict[str, Node] = {}
    for mask in graph:
        if mask.name in masked or mask.op not in MASKS or mask.attrs.get("T") is not FLOAT or mask.control_inputs:
            continue
        pool = nodes.get(node_name(mask.data_inputs[0]))
        if pool is None or pool.name in state.held or mask.name in state.fed_nodes or not _is_of(pool, mask, state):
            continue
        at_pool = f"{mask.name}/pooled"
        if at_pool in nodes:
            continue
        added[mask.name] = Node(at_pool, mask.op, (pool.inputs[2], pool.inputs[1]), mask.attrs, mask.device)
        changed[mask.name] = Node(mask.name, pool.op, (*pool.inputs[:2], at_pool), pool.attrs, mask.device)
        for sums in graph.consumers.get(mask.name, ()):
            if sums.op == "BiasAddGrad" and canonical(sums.data_inputs[0]) == f"{mask.name}:0":
                changed[sums.name] = sums.replace(inputs=(at_pool, *sums.inputs[1:]))
    if not changed:
        return graph
    ordered: list[Node] = []
    for node in graph:
        ordered += [added[node.name]] if node.name in added else []
        ordered.append(changed.get(node.name, node))
    return graph.replace(ordered)


def _is_of(pool: Node, mask: Node, state: GraphState) -> bool:
    """Whether a pool's gradient, which nobody else reads, is by the tensor that decides the mask, and is one that goes
    where its window's largest lies."""
    graph = state.graph
    if pool.op != "MaxPoolGrad" or pool.control_inputs or len(graph.consumers.get(pool.name, ())) != 1:
        return False
    pooled = graph.nodes.get(node_name(pool.data_inputs[1]))
    if (
        pooled is None
        or pooled.op != "MaxPool"
        or pooled.name in state.fed_nodes
        or pool.attrs.get("padding") not in (b"SAME", b"VALID")
    ):
        return False
    read = {canonical(ref) for ref in (pool.data_inputs[0], pooled.data_inputs[0], mask.data_inputs[1])}
    return len(read) == 1 and all(pool.attrs.get(name) == pooled.attrs.get(name) for name in POOLING)
