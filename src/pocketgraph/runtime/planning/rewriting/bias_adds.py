"""Writes biases of trained convolutions as BiasAdd, and their gradients as BiasAddGrad, as fused layers have them.

    given   Conv2D(x, w) -> AddV2(b) -> Relu,        ReluGrad -> Sum(axes=[0, 1, 2])
    result  Conv2D(x, w) -> BiasAdd(b) -> Relu,      ReluGrad -> BiasAddGrad

``conv2d(x, w) + b`` in Python gives the former; the vector has a number for each channel.
"""

from __future__ import annotations

from typing import Any

from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import SUMS
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.runtime.engines.rectified_layers import CONVOLUTIONS, RECTIFIERS
from pocketgraph.runtime.planning.graph_state import GraphState

ATTRS: dict[str, Any] = {"T": FLOAT, "data_format": b"NHWC"}


def with_bias_adds(state: GraphState) -> Graph:
    """The graph with these ops; the same graph where there are none to change.

    Args:
        state: the graph, and what is known of its tensors.
    """
    changed = {node.name: made for node in state.graph if (made := _changed(node, state)) is not None}
    return state.graph.map_nodes(lambda node: changed.get(node.name, node)) if changed else state.graph


def _changed(node: Node, state: GraphState) -> Node | None:
    """The node in the other form; None where it stays."""
    if node.name in state.fed_nodes or node.attrs.get("T") is not FLOAT:
        return None
    if node.op in SUMS:
        return _bias_add(node, state.graph, state.inferred)
    return _bias_add_grad(node, state.graph, state.inferred) if node.op == "Sum" else None


def _bias_add(node: Node, graph: Graph, inferred: Inferred) -> Node | None:
    for images, bias in (node.data_inputs, node.data_inputs[::-1]):
        conv, sizes = graph.nodes.get(node_name(images)), inferred.shape(canonical(images))
        if conv is None or conv.op not in CONVOLUTIONS.split("|") or conv.attr("data_format", b"NHWC") != b"NHWC":
            continue
        added = inferred.shape(canonical(bias))
        if sizes.is_known and added.is_known and len(added.known) == 1 and added.known == sizes.known[-1:]:
            inputs = (images, bias, *node.inputs[2:])
            return Node(node.name, "BiasAdd", inputs, ATTRS, node.device)
    return None


def _bias_add_grad(node: Node, graph: Graph, inferred: Inferred) -> Node | None:
    slopes, axes = map(canonical, node.data_inputs)
    mask, summed, rank = graph.nodes.get(node_name(slopes)), inferred.value(axes), inferred.shape(slopes).rank
    if mask is None or mask.op not in RECTIFIERS or summed is None or rank != 4 or node.attr("keep_dims"):
        return None
    if graph[node_name(axes)].inputs:  # an assertion that they wait for would not be waited for any more
        return None
    if sorted(axis + rank if axis < 0 else axis for axis in summed.reshape(-1).tolist()) != [*range(rank - 1)]:
        return None
    inputs = (node.inputs[0], *(f"^{name}" for name in node.control_inputs))
    return Node(node.name, "BiasAddGrad", inputs, ATTRS, node.device)
