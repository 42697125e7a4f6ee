"""Batch norms made of Mul, Add, Sub and Rsqrt become one FusedBatchNorm, so that they can be folded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pocketgraph.freezing.for_inference.batch_norm_folding import CONVOLUTIONS
from pocketgraph.graph import Graph, Node, Tensor, const, node_name


class _DecomposedNorm(NamedTuple):
    data: Node
    scale: Node
    gamma: Node | None
    beta: Node
    mean: Node
    variance: Node
    epsilon: Node
    data_format: bytes
    gone: tuple[str, ...]


def fuse_decomposed_batch_norms(graph: Graph) -> Graph:
    """Fuses x * s + (beta - mean * s), s = rsqrt(variance + epsilon) * gamma, behind a convolution in NHWC.

    ::

        r = Rsqrt(Add(variance, epsilon))
        s = Mul(r, gamma)                       ->   y = FusedBatchNorm(x, gamma, beta, mean, variance)
        y = Add(Mul(x, s), Sub(beta, Mul(mean, s)))

    Without gamma a constant of ones, ``…/gamma``, takes its place. Only ``Add`` is known, not AddV2, as in the
    original. What else used the ops that are fused must be none: the original's graph would miss them, ours keeps them.
    """
    new: list[Node] = []
    gone: set[str] = set()
    for node in graph:
        match = _match(graph, node) if node.op == "Add" and len(node.data_inputs) == 2 else None
        if match is None:
            continue
        gone |= {node.name, *match.gone}
        gamma = match.gamma
        if gamma is None:
            scope, slash, _ = match.scale.name.rpartition("/")
            beta = match.beta.tensor
            ones = Tensor.from_numpy(np.ones(beta.shape, beta.dtype.numpy), beta.dtype)
            gamma = const(f"{scope if slash else match.scale.name}/gamma", ones)
            new.append(gamma)
        inputs = [match.data.name, gamma.name, match.beta.name, match.mean.name, match.variance.name]
        new.append(
            Node(
                node.name,
                "FusedBatchNorm",
                inputs,
                {
                    "T": node.dtype(),
                    "is_training": False,
                    "epsilon": float(match.epsilon.tensor.numpy().reshape(-1)[0]),
                    "data_format": match.data_format,
                },
            )
        )
    if not new:
        return graph
    kept_users = [node for node in graph if node.name not in gone]
    still = {node_name(ref) for node in [*kept_users, *new] for ref in node.inputs if not ref.startswith("^")}
    waiting = [name for name in gone if name in still and name not in {item.name for item in new}]
    while waiting:  # something else uses a part of it
        name = waiting.pop()
        if name in gone:
            gone.discard(name)
            waiting += [node_name(ref) for ref in graph[name].data_inputs]
    kept = [node.without_waits(gone) for node in graph if node.name not in gone]
    return graph.replace([*kept, *new])


def _match(graph: Graph, node: Node) -> _DecomposedNorm | None:
    sides = [graph.find_producer(ref) for ref in node.data_inputs]
    ops = [side.op if side is not None else "" for side in sides]
    if ops not in (["Mul", "Sub"], ["Sub", "Mul"]):
        return None
    product, difference = sides if ops[0] == "Mul" else sides[::-1]
    assert product is not None
    assert difference is not None
    data, scale = (graph.find_producer(ref) for ref in product.data_inputs)
    beta, shift = (graph.find_producer(ref) for ref in difference.data_inputs)
    if data is None or scale is None or beta is None or shift is None or shift.op != "Mul":
        return None
    data_format = _data_format(graph, data)
    if data_format != b"NHWC" or scale.op not in ("Rsqrt", "Mul"):
        return None
    root, gamma = (scale, None) if scale.op == "Rsqrt" else (graph.find_producer(ref) for ref in scale.data_inputs)
    mean, same = (graph.find_producer(ref) for ref in shift.data_inputs)
    total = graph.find_producer(root.data_inputs[0]) if root is not None and root.op == "Rsqrt" else None
    if same is not scale or root is None or total is None or total.op != "Add":
        return None
    variance, epsilon = (graph.find_producer(ref) for ref in total.data_inputs)
    if scale.op == "Mul" and not _is_const(gamma, 1):
        return None
    if not (_is_const(beta, 1) and _is_const(mean, 1) and _is_const(variance, 1) and _is_const(epsilon, 0)):
        return None
    assert mean is not None
    assert variance is not None
    assert epsilon is not None
    gone = (product.name, difference.name, shift.name, scale.name, root.name, total.name)
    return _DecomposedNorm(data, scale, gamma, beta, mean, variance, epsilon, data_format, gone)


def _data_format(graph: Graph, data: Node) -> bytes | None:
    """Of the convolution that this is, or that one of its inputs is."""
    for node in (data, *(graph.find_producer(ref) for ref in data.data_inputs)):
        if node is not None and node.op in CONVOLUTIONS:
            value = node.attr("data_format", b"")
            return value if isinstance(value, bytes) else None
    return None


def _is_const(node: Node | None, rank: int) -> bool:
    return node is not None and node.op == "Const" and len(node.tensor.shape) == rank
