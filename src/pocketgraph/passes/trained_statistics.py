"""What training saw behind each batch normalization: it is still in the graph, and stands in for samples.

    y = FusedBatchNorm(x, gamma, beta, mean, variance)

The mean of channel i of y was beta[i] there, its standard deviation |gamma[i]|.

The same is true of a batch normalization that is spelled out, ``x * s + (beta - mean * s)``, s = gamma * rsqrt(...).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.op_traits import PASSES, SUMS, ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.passes.batch_norm_parameters import arranged


class ChannelStatistics(NamedTuple):
    """Of a tensor's values over the training data, for each channel: float64 [channels]."""

    mean: Array
    deviation: Array


def trained_statistics(graph: Graph) -> dict[str, ChannelStatistics]:
    """The statistics of the results of batch norms whose parameters are constants, by the node that makes them."""
    found: dict[str, ChannelStatistics] = {}
    for node in graph:
        if node.op in ops_with("batch_norm") and not node.attr("is_training", False):
            parameters = [_constant(graph, ref) for ref in node.data_inputs[1:5]]
            if len(parameters) == 4:
                gamma, beta, _, _ = arranged(node, parameters)
                _add(found, node, gamma, beta)
        elif node.op in SUMS and len(node.data_inputs) == 2:
            _add(found, node, *_spelled_out(graph, node))
    return found


def _add(found: dict[str, ChannelStatistics], node: Node, gamma: Array | None, beta: Array | None) -> None:
    if gamma is None or beta is None or gamma.shape != beta.shape or gamma.ndim != 1:
        return
    if np.isfinite(gamma).all() and np.isfinite(beta).all():
        found[node.name] = ChannelStatistics(beta.astype(np.float64), np.abs(gamma.astype(np.float64)))


def _spelled_out(graph: Graph, node: Node) -> tuple[Array | None, Array | None]:
    """Gamma and beta of the batch norm whose last sum this is; None where it is none."""
    sides = [_maker(graph, ref) for ref in node.data_inputs]
    for product, offset in (sides, sides[::-1]):
        if product is None or offset is None or product.op != "Mul" or offset.op != "Sub":
            continue
        beta = _constant(graph, offset.data_inputs[0])
        shift = _maker(graph, offset.data_inputs[1])
        if beta is None or shift is None or shift.op != "Mul":
            continue
        theirs = {_behind(graph, ref) for ref in shift.data_inputs}
        shared = [name for name in (_behind(graph, ref) for ref in product.data_inputs) if name in theirs]
        for scale in (graph.nodes.get(name) for name in shared):
            if scale is None:
                continue
            if scale.op == "Rsqrt":
                return np.ones_like(beta), beta
            factors = [_maker(graph, ref) for ref in scale.data_inputs] if scale.op == "Mul" else []
            for at, factor in enumerate(factors):
                if factor is not None and factor.op == "Rsqrt":
                    return _constant(graph, scale.data_inputs[1 - at]), beta
    return None, None


def _behind(graph: Graph, ref: str) -> str:
    """The name of the node that makes a tensor, past those that only pass it on."""
    node = _maker(graph, ref)
    return node_name(ref) if node is None else node.name


def _maker(graph: Graph, ref: str) -> Node | None:
    return graph.find_producer(ref, PASSES)


def _constant(graph: Graph, ref: str) -> Array | None:
    value = graph.constant(ref)
    return None if value is None else value.numpy()
