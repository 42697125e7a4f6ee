"""Folds batch norms with constant statistics into the convolution before them, as optimize_for_inference does."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import command_on_model
from pocketgraph.freezing.for_inference.remove_training_nodes import Version
from pocketgraph.graph import AttrValue, Graph, Node, Tensor, const, node_name, parse_ref
from pocketgraph.graph.op_traits import BIASED_SUMS, CONVOLUTIONS_2D, SWITCH
from pocketgraph.passes.batch_norm_parameters import GLOBAL, affine_of, arranged
from pocketgraph.passes.channel_scaling import output_channels, scaled_weights

log = logging.getLogger("pocketgraph.freezing")

SCALES = "scale_after_normalization"
_NORMS = (GLOBAL, "FusedBatchNorm", "FusedBatchNormV3")
"""Not a trait: the batch norms that the original knows."""


_FROZEN = " (was the graph frozen?)"


class _FoldedLayer(NamedTuple):
    norm: Node
    conv: Node
    weights: Node
    bias: Node | None
    add: Node | None
    statistics: tuple[Node, Node, Node, Node]  # mean, variance, beta, gamma


def fold_batch_norms(graph: Graph, *, like: Version = "2.x") -> Graph:
    """A convolution and its batch norm become a convolution with scaled weights and a BiasAdd.

    ::

        c = Conv2D(x, w)                       ->   c_weights = Const(w * scale)
        y = FusedBatchNorm(c, g, b, m, v)           c = Conv2D(x, c_weights)
                                                    c_bn_offset = Const(b - m * scale)
                                                    y = BiasAdd(c, c_bn_offset)

    with scale = g / sqrt(v + epsilon). New nodes come last. Like 1.15 the weights keep their name and only
    BatchNormWithGlobalNormalization and FusedBatchNorm are known; like 2.x FusedBatchNormV3 too, and a bias that is
    added in between is folded as well.

    Differs from the original: a batch norm whose other outputs are used is left alone and weights and statistics that
    another node uses stay (the original makes graphs that do not load); so is one whose convolution, or bias in
    between, something else reads, whose layout is not the convolution's, or whose bias is not one number for each
    channel (the original scales what others read, or makes graphs that do not load); and an epsilon that is not stated
    is the op's default (the original takes 0).
    """
    taken_ports = {node_name(ref) for node in graph for ref in node.data_inputs if parse_ref(ref).port > 0}
    reads = Counter(node_name(ref) for node in graph for ref in node.data_inputs)
    reads.update(map(node_name, graph.outputs))
    gone: set[str] = set()
    replaced: set[str] = set()
    new: list[Node] = []
    refused: dict[str, list[str]] = {}
    for node in graph:
        if node.op not in _NORMS or (like == "1.15" and node.op == "FusedBatchNormV3"):
            continue
        match = _match(graph, node, like, reads)
        if isinstance(match, str):
            refused.setdefault(match, []).append(node.name)
            continue
        if match is None or node.name in taken_ports:
            continue
        made = _folded(match, like)
        gone |= {node.name, match.conv.name}
        replaced.add(match.weights.name)
        if match.add is not None:
            gone.add(match.add.name)
        if like == "1.15":
            replaced |= {item.name for item in match.statistics}
        new += made
    for why, names in refused.items():
        more = f" (and {len(names) - 1} more batch norms)" if names[1:] else ""
        log.warning("the batch norm '%s'%s was not folded: %s", names[0], more, why)
    replaced -= {node_name(ref) for ref in graph.outputs}
    gone |= {name for name in replaced if all(user.name in gone for user in graph.consumers.get(name, ()))}
    kept = [node for node in graph if node.name not in gone]
    if like == "2.x":
        kept = [node.without_waits(gone) for node in kept]
    return graph.replace([*kept, *new])


def _match(graph: Graph, norm: Node, like: Version, reads: Mapping[str, int]) -> _FoldedLayer | str | None:
    """What is folded, or why nothing is; None where that goes without saying. ``reads`` is how often each node is."""
    if len(norm.data_inputs) != 5:
        return None
    conv, *parameters = (graph.find_producer(ref) for ref in norm.data_inputs)
    gamma, beta, mean, variance = arranged(norm, parameters)
    add = bias = None
    if like == "2.x" and conv is not None and conv.op in BIASED_SUMS and len(conv.data_inputs) == 2:
        add = conv
        conv, bias = (graph.find_producer(ref) for ref in add.data_inputs)
        if conv is None or conv.op not in CONVOLUTIONS_2D:
            conv, bias = bias, conv
        if bias is None or bias.op != "Const":
            return "the bias before it is no constant" + _FROZEN
    if conv is not None and conv.op in SWITCH:
        return (
            "a condition decides whether it runs, such as is_training; "
            + command_on_model("pocketgraph freeze_graph {} -o decided.pb --repair=flags")
            + " keeps inference's branch alone"
        )
    if conv is None or conv.op not in CONVOLUTIONS_2D or len(conv.data_inputs) != 2:
        return "it does not follow a Conv2D or DepthwiseConv2dNative" + _FROZEN
    weights = graph.find_producer(conv.data_inputs[1])
    if weights is None or weights.op != "Const":
        return f"the weights of '{conv.name}' are no constant" + _FROZEN
    shape = weights.tensor.shape
    if len(shape) != 4:
        return f"the weights of '{conv.name}' have {len(shape)} dimensions" + _FROZEN
    channels = output_channels(conv, shape)
    found: list[Node] = []
    for what, item in (("mean", mean), ("variance", variance), ("beta", beta), ("gamma", gamma)):
        if item is None or item.op != "Const":
            return f"its {what} is no constant" + _FROZEN
        if item.tensor.shape != (channels,):
            return f"its {what} has the shape {list(item.tensor.shape)} for {channels} channels" + _FROZEN
        found.append(item)
    form = conv.attr("data_format", b"NHWC")
    if norm.attr("data_format", b"NHWC") != form:
        return f"its data_format is not that of '{conv.name}'"
    if add is not None and bias is not None:
        by_channel = form == b"NHWC" or add.op == "BiasAdd"
        if bias.tensor.shape not in ((), (1,), *([(channels,)] if by_channel else [])):
            return f"the bias before it has the shape {list(bias.tensor.shape)} for {channels} channels"
    for changed in (conv, add, weights if like == "1.15" else None):
        if changed is not None and reads[changed.name] > 1:
            return f"something else reads '{changed.name}'"
    return _FoldedLayer(norm, conv, weights, bias, add, (found[0], found[1], found[2], found[3]))


def _folded(match: _FoldedLayer, like: Version) -> list[Node]:
    norm, conv = match.norm, match.conv
    mean, variance, beta, gamma = (item.tensor.numpy() for item in match.statistics)
    if match.bias is not None:
        mean = mean - match.bias.tensor.numpy()
    # in double precision from the root on, as the original, which takes what is not stated for false
    stated = norm if norm.op != GLOBAL else norm.with_attrs(**{SCALES: norm.attr(SCALES, False)})
    scale, offset = affine_of(stated, gamma, beta, mean, variance, np.float64)
    weights = match.weights.tensor
    scaled = scaled_weights(conv, weights, scale)
    assert scaled is not None
    scaled = scaled.astype(weights.dtype.numpy)
    name = match.weights.name if like == "1.15" else f"{conv.name}_weights"
    inputs = [name if node_name(ref) == match.weights.name else ref for ref in conv.inputs]
    attrs: dict[str, AttrValue] = {"T": conv.dtype()}
    data_format = conv.attrs.get("data_format")
    if data_format is not None:
        attrs["data_format"] = data_format
    return [
        const(name, Tensor.from_numpy(scaled, weights.dtype)),
        conv.replace(inputs=inputs if like == "2.x" else conv.inputs),
        const(
            f"{conv.name}_bn_offset", Tensor.from_numpy(offset.astype(mean.dtype), match.statistics[0].dtype("dtype"))
        ),
        Node(norm.name, "BiasAdd", [conv.name, f"{conv.name}_bn_offset"], attrs),
    ]
