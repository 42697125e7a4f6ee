"""Batch norms that were folded into layers become a product and a sum of their own again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor, canonical, const, node_name, opdefs
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.op_traits import BIASED_SUMS, CONVOLUTIONS_2D
from pocketgraph.graph.tensor import Array


def with_unfolded_batch_norms(graph: Graph) -> tuple[Graph, list[str]]:
    """The graph with a scale for each channel behind each layer that has an offset, and the names of the scales.

    What a folded batch norm was is not in the graph any more; its place is: one product and one sum a channel::

        y = BiasAdd(Conv2D(x, w), b)   ->   y = BiasAdd(Mul(Conv2D(x, w / gamma), gamma), b)

    ``gamma`` begins with the power of two nearest to the norm of a channel's weights, so that results are the same to
    the last bit, and layers have weights of like size (Salimans and Kingma, "Weight Normalization", 2016).
    """
    added: list[Node] = []
    replaced: dict[str, Node] = {}
    renames: dict[str, str] = {}
    scales = []
    for layer, holder in _layers(graph):
        weights = holder.tensor.numpy()
        gamma = _norms(layer, weights)
        wide = gamma.reshape(weights.shape[-2:]) if layer.op.startswith("Depthwise") else gamma
        replaced[holder.name] = holder.replace(
            attrs={**holder.attrs, "value": Tensor.from_numpy((weights / wide).astype(weights.dtype))}
        )
        name = f"{layer.name}/gamma"
        scaled = Node(f"{layer.name}/scaled", "Mul", [layer.name, name], {"T": holder.tensor.dtype.base}, layer.device)
        added += [const(name, gamma, holder.tensor.dtype, device=holder.device), scaled]
        renames[f"{layer.name}:0"] = scaled.name
        scales.append(name)
    edited = graph.replace([replaced.get(node.name, node) for node in graph])
    result = rename_inputs(edited, renames)
    return result.replace([*result, *added]), scales


def _layers(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """The layers with an offset behind them, each with the constant that holds its weights and nothing else's."""
    for node in graph:
        is_product = node.op == "MatMul" and not opdefs.attr_or_default(node, "transpose_b")
        is_layer = node.op in CONVOLUTIONS_2D and opdefs.attr_or_default(node, "data_format") == b"NHWC"
        if not (is_product or is_layer) or f"{node.name}/gamma" in graph or f"{node.name}/scaled" in graph:
            continue
        readers = graph.consumers.get(node.name, ())
        if len(readers) != 1 or readers[0].op not in BIASED_SUMS or not _has_vector(graph, readers[0], node):
            continue
        holder = _sole_holder(graph, node)
        if holder is not None and holder.tensor.dtype.is_floating:
            yield node, holder


def _has_vector(graph: Graph, reader: Node, layer: Node) -> bool:
    """Whether a sum adds a constant vector to a layer's result."""
    others = [ref for ref in reader.data_inputs if canonical(ref) != f"{layer.name}:0"]
    found = graph.constant(others[0]) if len(others) == 1 else None
    return found is not None and len(found.shape) == 1


def _sole_holder(graph: Graph, layer: Node) -> Node | None:
    """The Const of a layer's weights, seen through Identity; None where anything else reads it."""
    name = node_name(layer.data_inputs[1])
    while name in graph and len(graph.consumers.get(name, ())) == 1:
        node = graph[name]
        if node.op == "Const":
            return node
        if node.op != "Identity":
            return None
        name = node_name(node.data_inputs[0])
    return None


def _norms(layer: Node, weights: Array) -> Array:
    """For each channel of the result the power of two nearest to the norm of its weights, 1 where all are 0."""
    kept = 2 if layer.op.startswith("Depthwise") else 1
    wide = weights.astype(np.float64)
    norms = np.sqrt(np.sum(np.square(wide), axis=tuple(range(weights.ndim - kept)))).reshape(-1)
    powers = np.exp2(np.rint(np.log2(np.where(norms > 0, norms, 1.0))))
    made: Array = powers.astype(weights.dtype)
    return made
