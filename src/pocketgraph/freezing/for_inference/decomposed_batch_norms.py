"""Batch norms made of Mul, Add, Sub and Rsqrt become one FusedBatchNorm, so that they can be folded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pocketgraph.graph import AttrValue, Graph, Node, Tensor, const, node_name
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import CONVOLUTIONS_2D
from pocketgraph.graph.pattern import Match, Pattern, fit


def _patterns() -> Iterator[Pattern]:
    beta, mean, variance, epsilon, gamma = (Pattern("Const", name=name) for name in RANKS)
    total = Pattern("Add", [variance, epsilon], name="total")
    shift = Pattern("Mul", [mean, Pattern("*", name="same")], name="shift")
    difference = Pattern("Sub", [beta, shift], name="difference")
    root = Pattern("Rsqrt", [total], name="root")
    for scale in (Pattern("Rsqrt", [total], name="scale"), Pattern("Mul", [root, gamma], name="scale")):
        product = Pattern("Mul", [Pattern("*", name="data"), scale], name="product")
        yield Pattern("Add", [product, difference])
        yield Pattern("Add", [difference, product])


RANKS = {"beta": 1, "mean": 1, "variance": 1, "epsilon": 0, "gamma": 1}
"""Of its parameters; one without gamma has none."""
FUSED = ("product", "difference", "shift", "scale", "root", "total")
DECOMPOSED = tuple(_patterns())


def fuse_decomposed_batch_norms(graph: Graph) -> Graph:
    """Fuses x * s + (beta - mean * s), s = rsqrt(variance + epsilon) * gamma, behind a convolution in NHWC.

    ::

        r = Rsqrt(Add(variance, epsilon))
        s = Mul(r, gamma)                       ->   y = FusedBatchNorm(x, gamma, beta, mean, variance)
        y = Add(Mul(x, s), Sub(beta, Mul(mean, s)))

    Without gamma a constant of ones, ``…/gamma``, takes its place. Only ``Add`` is known, not AddV2, as in the
    original. What else used the ops that are fused must be none: the original's graph would miss them, ours keeps them,
    and the port of x, which the original loses.
    """
    new: list[Node] = []
    gone: set[str] = set()
    for node in graph:
        match = _match(graph, node)
        if match is None:
            continue
        gone |= {node.name, *(match[part].name for part in FUSED if part in match.named)}
        beta, mean, variance = (match[name] for name in ("beta", "mean", "variance"))
        gamma = match.named.get("gamma")
        if gamma is None:
            scope, slash, _ = match["scale"].name.rpartition("/")
            ones = Tensor.from_numpy(np.ones(beta.tensor.shape, beta.tensor.dtype.numpy), beta.tensor.dtype)
            gamma = const(f"{scope if slash else match['scale'].name}/gamma", ones)
            new.append(gamma)
        inputs = [match["product"].data_inputs[0], gamma.name, beta.name, mean.name, variance.name]
        epsilon = float(match["epsilon"].tensor.numpy().reshape(-1)[0])
        attrs: dict[str, AttrValue] = {
            "T": node.dtype(),
            "is_training": False,
            "epsilon": epsilon,
            "data_format": b"NHWC",
        }
        new.append(Node(node.name, "FusedBatchNorm", inputs, attrs))
    if not new:
        return graph
    kept_users = [node for node in graph if node.name not in gone]
    still = {node_name(ref) for node in [*kept_users, *new] for ref in node.inputs if not ref.startswith("^")}
    still |= {node_name(ref) for ref in graph.outputs}
    used = gone & still - {item.name for item in new}
    needed = set(closure(used, lambda name: map(node_name, graph[name].data_inputs), gone.__contains__))
    gone -= needed  # something else uses a part of it
    kept = [node.without_waits(gone) for node in graph if node.name not in gone]
    return graph.replace([*kept, *new])


def _match(graph: Graph, node: Node) -> Match | None:
    for pattern in DECOMPOSED:
        match = fit(node, pattern, graph.nodes)
        if match is not None and match["same"] is match["scale"] and _data_format(graph, match["data"]) == b"NHWC":
            known = [(match.named[name], rank) for name, rank in RANKS.items() if name in match.named]
            return match if all(len(item.tensor.shape) == rank for item, rank in known) else None
    return None


def _data_format(graph: Graph, data: Node) -> bytes | None:
    """Of the convolution that this is, or that one of its inputs is."""
    for node in (data, *(graph.find_producer(ref) for ref in data.data_inputs)):
        if node is not None and node.op in CONVOLUTIONS_2D:
            value = node.attr("data_format", b"")
            return value if isinstance(value, bytes) else None
    return None
