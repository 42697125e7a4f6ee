"""The part of a base that is trained: where it begins, and as a network with a head behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pocketgraph.apps.retraining.softmax_head import Head
from pocketgraph.differentiation.unfolded_batch_norms import with_unfolded_batch_norms
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, Node, Shape, canonical, const, node_name
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.op_traits import CONTRACTIONS, PLACEHOLDERS
from pocketgraph.graph.order import reachable, topological
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import infer
from pocketgraph.transforms import TransformGraph

SCOPE = "retrain"
FEATURES, LOGITS, LABELS, RATE = (f"{SCOPE}/{name}" for name in ("features", "logits", "labels", "rate"))
HEAD = (f"{SCOPE}/weights", f"{SCOPE}/biases")


@dataclass(frozen=True)
class Tail:
    """The part of a base that is trained.

    Attributes:
        graph: the whole base, its constants folded.
        start: the tensor that the part takes.
        layers: names of the layers in it.
    """

    graph: Graph
    start: str
    layers: tuple[str, ...]


def tail_of(graph: Graph, source: str, cut: str, layers: int) -> Tail:
    """Where training begins: the last tensor through which all goes and behind which so many layers are.

    Args:
        graph: the base.
        source: the tensor that the picture goes in by.
        cut: the tensor that the head takes.
        layers: at least so many; all where there are fewer.

    Raises:
        UsageError: there is no layer with weights before the cut.
    """
    needed = reachable(graph, [cut])
    fed = [node.name for node in graph if node.name in needed and node.op in PLACEHOLDERS]
    folded = TransformGraph(graph, fed, [cut], ["fold_constants"])
    path = behind(folded, source, cut)
    trained = {node.name for node in path if node.op in CONTRACTIONS}
    if not trained:
        raise UsageError("the base has no layers with weights before its cut", where=f"node '{node_name(cut)}'")
    last_use = {canonical(ref): i for i, node in enumerate(path) for ref in node.data_inputs}
    last_use[canonical(cut)] = len(path)
    made, start, left = {node.name for node in path} | {node_name(source)}, canonical(source), len(trained)
    open_tensors = {canonical(source)}
    for i, node in enumerate(path):
        open_tensors |= {tensor for tensor in last_use if node_name(tensor) == node.name}
        open_tensors = {tensor for tensor in open_tensors if last_use.get(tensor, -1) > i and node_name(tensor) in made}
        left -= node.name in trained
        if left < min(layers, len(trained)):
            break
        if len(open_tensors) == 1:
            (start,) = open_tensors
    names = tuple(node.name for node in behind(folded, start, cut) if node.name in trained)
    return Tail(folded, start, names)


def network_of(tail: Tail, cut: str, head: Head, shape: tuple[int, ...]) -> tuple[Graph, dict[str, Array]]:
    """The tail with a head behind it, for any number of examples; the scales that its layers' weights were divided by.

    Layers that a batch norm was folded into get weights of like size in each channel, so that one rate suits all.
    """
    graph, start = tail.graph, node_name(tail.start)
    path = behind(graph, tail.start, cut)
    needed = reachable(graph, [cut], stop=[start])
    sizes = infer(graph)
    nodes = {node.name: node for node in graph if node.name in needed and node.name != start}
    for node in path:
        if node.op == "Reshape" and (rest := sizes.shape(node.name).dims) and None not in rest[1:]:
            sized = const(f"{SCOPE}/sizes/{node.name}", np.array([-1, *rest[1:]], np.int32))
            nodes[sized.name] = sized
            nodes[node.name] = node.replace(inputs=(node.inputs[0], sized.name), attrs={**node.attrs, "Tshape": INT32})
    fed = Node(start, "Placeholder", (), {"dtype": FLOAT, "shape": Shape((None, *shape))})
    network, gammas = with_unfolded_batch_norms(graph.replace([fed, *nodes.values()], outputs=(cut,), signatures={}))
    scales = {}
    for name in gammas:
        layer = network[name.removesuffix("/gamma")]
        gamma = network[name].tensor.numpy()
        holder = network.producer(layer.data_inputs[1])
        while holder.op != "Const":
            holder = network.producer(holder.data_inputs[0])
        wide = gamma.reshape(holder.tensor.shape[-2:]) if layer.op.startswith("Depthwise") else gamma
        scales[holder.name] = wide
    table, biases = HEAD
    made = [
        const(f"{FEATURES}/shape", np.array([-1, len(head.weights)], np.int32)),
        Node(FEATURES, "Reshape", (cut, f"{FEATURES}/shape"), {"T": FLOAT, "Tshape": INT32}),
        const(table, head.weights),
        const(biases, head.biases),
        Node(f"{SCOPE}/product", "MatMul", (FEATURES, table), {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
        Node(LOGITS, "BiasAdd", (f"{SCOPE}/product", biases), {"T": FLOAT}),
    ]
    return network.replace([*network, *made], outputs=(LOGITS,)), scales


def behind(graph: Graph, source: str, cut: str) -> list[Node]:
    """The nodes on the way from a tensor to another, in an order in which they can run."""
    needed = reachable(graph, [cut], stop=[node_name(source)])
    found: set[str] = {node_name(source)}
    result = []
    for node in topological(graph, partial=True):
        if node.name in needed and node.name not in found and any(node_name(ref) in found for ref in node.data_inputs):
            found.add(node.name)
            result.append(node)
    return result
