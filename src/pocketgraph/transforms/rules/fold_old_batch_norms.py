"""Folds a batch normalization op behind a convolution into its weights and a bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import AttrValue, DType, Graph, Node, const, node_name, parse_ref
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.passes.batch_norm_parameters import Affine, affine_of, arranged
from pocketgraph.passes.channel_scaling import output_channels, scaled_weights
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.original.numbering import duplicate_names
from pocketgraph.transforms.parts.affine_folding import BATCH_NORMS, PRODUCTS, SUMS, fold_affine
from pocketgraph.transforms.parts.constants_of_nodes import checked_constant
from pocketgraph.transforms.parts.near_misses import THROUGH, around, fold_miss, source_of
from pocketgraph.transforms.tool import transform

CONV = Pattern("Conv2D|DepthwiseConv2dNative", ["*", "Const"])


FIRST = "BatchNormWithGlobalNormalization|FusedBatchNorm"
LATER = "FusedBatchNormV2|FusedBatchNormV3"


def batch_norm_of(producer: Pattern, ops: str = FIRST) -> Pattern:
    """The pattern of a batch norm behind ``producer``, its statistics constants."""
    return Pattern(ops, [producer, "Const", "Const", "Const", "Const"])


SPACE = Pattern("BatchToSpaceND", [CONV, "Const", "Const"])
CONCAT = Pattern("ConcatV2|Concat", [CONV, CONV, "Const"])
DIRECT = batch_norm_of(CONV)
THROUGH_SPACE = batch_norm_of(SPACE)
THROUGH_CONCAT = batch_norm_of(CONCAT)


@transform
def fold_old_batch_norms(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Folds batch normalization ops into the convolution beside them.

    Given:   x = Placeholder(dtype=float)
             w = Const(float [[[[3.0]]]])
             conv = Conv2D(x, w, T=float)
             gamma = Const(float [2.0])
             beta = Const(float [0.5])
             mean = Const(float [1.0])
             variance = Const(float [4.0])
             norm = FusedBatchNorm(conv, gamma, beta, mean, variance, T=float, epsilon=0.0)
    Result:  w = Const(float [[[[3.0]]]])
             x = Placeholder(dtype=float)
             conv = Conv2D(x, w, T=float)
             conv_bn_offset = Const(float [-0.5])
             norm = BiasAdd(conv, conv_bn_offset, T=float)

    The weights ``w`` are scaled in place, and the normalization's parameters vanish. The convolution is Conv2D or
    DepthwiseConv2dNative with constant weights. Between it and the normalization there may be a BatchToSpaceND (an
    atrous convolution), or a ConcatV2 of two convolutions. ``is_training`` is not looked at: a frozen graph's
    statistics are the ones to use.

    Differs from the original: FusedBatchNormV2 and V3 are folded as well, and normalizations that have a BiasAdd or
    other sums and factors between them and the convolution, that are behind a Conv2DBackpropInput, whose parameters are
    not constants themselves but made of a few, or that stand before the convolution where no padding meets what they
    add, unless they bring inputs of many units to one scale. A match is left alone when its convolution or weights are
    used elsewhere or are outputs of the graph (there, the other user silently gets scaled values), when another output
    than the first of FusedBatchNorm is used (there, the reference leads to nothing), and when types or sizes do not fit
    (there, the program aborts); parameters that two normalizations share stay (there, the program runs forever). With
    ``Compat.ORIGINAL`` it is an error where the program aborts or runs forever. What both convolutions before a
    ConcatV2 read stands in the graph once (there, twice; such a graph cannot be loaded, and fold_constants,
    merge_duplicate_nodes and quantize_nodes fail on it, with ``Compat.ORIGINAL``, too).

    Raises:
        TransformError: variance, beta or gamma is not a vector of as many elements as mean.
    """
    folds = [(DIRECT, _direct), (THROUGH_SPACE, _through_space), (THROUGH_CONCAT, _through_concat)]
    if compat.original:
        for pattern, fold in folds:
            graph = _to_the_letter(graph, pattern, fold)
        return graph
    folds += [(batch_norm_of(SPACE, LATER), _through_space), (batch_norm_of(CONCAT, LATER), _through_concat)]
    fixed = {node_name(ref) for ref in (*graph.inputs, *graph.outputs)}
    for pattern, fold in folds:
        graph = _repeated(graph, pattern, fold, fixed)
    return fold_affine(graph, SUMS | PRODUCTS | BATCH_NORMS, BATCH_NORMS)


def _to_the_letter(graph: Graph, pattern: Pattern, fold: Callable[[Match, Affine], list[Node] | None]) -> Graph:
    """Folds as the original does: whoever else reads the convolution or its weights gets what has been scaled.

    Raises:
        TransformError: the original aborts here, or never ends.
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        norm = _norm(match)
        new = None if norm is None else fold(match, norm)
        where = f"node '{match.node.name}'"
        if new is None:
            raise TransformError("types or sizes of the normalization and its convolution do not fit", where=where)
        lost = used - {node.name for node in new}
        if lost:
            what = f"something else reads '{min(lost)}', too, and the original never ends"
            raise TransformError(what, where=where, hint="compat=fixed keeps it")
        names = [node.name for node in new]
        duplicate_names().update(name for name in names if names.count(name) > 1)
        return new

    times = 1
    while times:
        graph, times = replace_matches(graph, pattern, rewrite)
    return graph


def _repeated(
    graph: Graph, pattern: Pattern, fold: Callable[[Match, Affine], list[Node] | None], fixed: set[str]
) -> Graph:
    """Folds until nothing is left: normalizations that share a node are found one at a time."""
    times = 1
    while times:
        folded: dict[str, list[Node]] = {}

        @cache
        def reads(graph: Graph = graph) -> _Reads:
            return _Reads(graph, fixed)

        def accept(match: Match, reads: Callable[[], _Reads] = reads, folded: dict[str, list[Node]] = folded) -> bool:
            if not _is_ready(match):
                return False
            norm = _norm(match)
            new = fold(match, norm) if norm is not None and reads().allow(match) else None
            if new is not None:
                folded[match.node.name] = new
            return new is not None

        def rewrite(match: Match, used: frozenset[str], folded: dict[str, list[Node]] = folded) -> list[Node]:
            new = folded[match.node.name]
            names = {node.name for node in new}
            shared = used | {node_name(ref) for node in new for ref in node.inputs}
            return new + [node for node in match.nodes if node.name in shared - names]

        graph, times = replace_matches(graph, pattern, rewrite, accept=accept, keep_ends=True)
    return graph


def _is_ready(match: Match) -> bool:
    """Whether a normalization has statistics (in training it has none yet) and looks at the convolution's channels."""
    layouts = {part.node.attr("data_format", b"NHWC") for part in (match, *_convolutions(match))}
    statistics = [checked_constant(part.node) for part in match.inputs[3:]]
    needs_none = match.node.op == "BatchNormWithGlobalNormalization"
    return len(layouts) == 1 and (needs_none or not all(tensor.size == 0 for tensor in statistics))


class _Reads:
    """How often each node is read, which decides what may change its value or vanish."""

    def __init__(self, graph: Graph, outputs: set[str]) -> None:
        self.outputs = outputs
        self.at_all: dict[str, int] = {}
        self.by_control: dict[str, int] = {}
        self.at_other_ports: set[str] = set()
        at_all = self.at_all
        for node in graph:
            for ref in node.inputs:
                name = node_name(ref)
                at_all[name] = at_all.get(name, 0) + 1
                if ref is not name and ref != name:
                    if ref.startswith("^"):
                        self.by_control[name] = self.by_control.get(name, 0) + 1
                    elif not ref.endswith(":0"):
                        self.at_other_ports.add(name)

    def allow(self, match: Match) -> bool:
        """Whether nothing but the match reads its convolutions and their weights, or what lies between; and nothing
        reads another output of the normalization than the first."""
        convolutions = _convolutions(match)
        changed = {node.name for conv in convolutions for node in (conv.node, conv.inputs[1].node)}
        between = set() if match.inputs[0] in convolutions else {match.inputs[0].node.name}
        return (
            match.node.name not in self.at_other_ports
            and not (changed | between) & self.outputs
            and all(self.at_all.get(name, 0) - self.by_control.get(name, 0) == 1 for name in changed)
            and all(self.at_all.get(name, 0) == 1 for name in between)
        )


def _convolutions(match: Match) -> list[Match]:
    first = match.inputs[0]
    return [first] if first.pattern is CONV else [part for part in first.inputs if part.pattern is CONV]


def _norm(match: Match) -> Affine | None:
    """Scale and offset from the parameters; None when they are not float vectors."""
    node = match.node
    tensors = [checked_constant(part.node) for part in match.inputs[1:]]
    if any(tensor.dtype is not FLOAT for tensor in tensors) or not all(tensor.shape for tensor in tensors):
        return None
    gamma, beta, mean, variance = arranged(node, tensors)
    for name, tensor in (("Variance", variance), ("Beta", beta), ("Gamma", gamma)):
        if tensor.shape != mean.shape[:1]:
            raise TransformError(
                f"{name} input to batch norm has bad shape: {list(tensor.shape)}", where=f"node '{node.name}'"
            )
    means = mean.numpy().reshape(-1)[: variance.size]
    return affine_of(node, gamma.numpy(), beta.numpy(), means, variance.numpy(), np.float32)


def _direct(match: Match, norm: Affine) -> list[Node] | None:
    return _with_bias(match.inputs[0], norm, match.node.name)


def _through_space(match: Match, norm: Affine) -> list[Node] | None:
    """The bias goes right behind the convolution, and BatchToSpaceND takes the normalization's place."""
    space = match.inputs[0]
    name = space.inputs[0].node.name + "/biasadd"
    conv = _with_bias(space.inputs[0], norm, name)
    if conv is None:
        return None
    inputs = (name, *space.node.inputs[1:])
    return [*conv, space.inputs[1].node, space.inputs[2].node, space.node.replace(name=match.node.name, inputs=inputs)]


def _through_concat(match: Match, norm: Affine) -> list[Node] | None:
    """Each convolution gets its channels' share, and the ConcatV2 takes the normalization's place."""
    concat = match.inputs[0]
    first, second, axis = concat.inputs
    axis_value = checked_constant(axis.node)
    if axis_value.dtype is not INT32 or axis_value.size != 1:
        return None
    norms = (norm, norm)
    if int(axis_value.numpy().reshape(())) == 3:
        channels = output_channels(first.node, checked_constant(first.inputs[1].node).shape) or 0
        norms = (
            Affine(norm.scale[:channels], norm.offset[:channels]),
            Affine(norm.scale[channels:], norm.offset[channels:]),
        )
    names = [concat.node.name + "_bn_in0", concat.node.name + "_bn_in1"]
    folded = [_with_bias(part, share, name) for part, share, name in zip((first, second), norms, names, strict=True)]
    if folded[0] is None or folded[1] is None or first.inputs[1].node is second.inputs[1].node:
        return None
    inputs = (*names, *concat.node.inputs[2:])
    return [*folded[0], *folded[1], axis.node, concat.node.replace(name=match.node.name, inputs=inputs)]


def _with_bias(conv: Match, norm: Affine, name: str) -> list[Node] | None:
    """The convolution with scaled weights, and a BiasAdd of this name behind it; None when the sizes do not fit."""
    source, weights = conv.inputs[0].node, conv.inputs[1].node
    values = checked_constant(weights)
    scaled = scaled_weights(conv.node, values, norm.scale) if values.dtype is FLOAT else None
    if scaled is None or source is weights:
        return None
    dtype = conv.node.attr("T", FLOAT)
    assert isinstance(dtype, DType)
    attrs: dict[str, AttrValue] = {"T": dtype}
    if "data_format" in conv.node.attrs:
        attrs["data_format"] = conv.node.attrs["data_format"]
    offset = const(conv.node.name + "_bn_offset", norm.offset)
    return [
        const(weights.name, scaled),
        source,
        conv.node,
        offset,
        Node(name, "BiasAdd", (conv.node.name, offset.name), attrs),
    ]


def near_misses(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    for node in graph:
        if node.op not in BATCH_NORMS or not node.data_inputs:
            continue
        found = around(graph, node)
        if found is None:
            source = source_of(graph, node.data_inputs[0])
            if source is not None and source.op in THROUGH:
                yield Miss(node.name, f"an {source.op} stands before it", f"remove_nodes(op={source.op})")
            else:
                yield Miss(node.name, f"no convolution is next to it (before it: {source.op if source else 'nothing'})")
            continue
        if any(parse_ref(ref).port > 0 for user in graph.consumers.get(node.name, ()) for ref in user.inputs
               if node_name(ref) == node.name):  # fmt: skip
            yield Miss(node.name, "another output than its first is used")
            continue
        moments = [graph.constant(ref) for ref in node.data_inputs[3:5]]
        if node.attr("is_training", node.op.startswith("Fused")) and any(m is not None and not m.size for m in moments):
            yield Miss(node.name, "it is of training: it has no mean and variance of its own")
            continue
        yield fold_miss(graph, node, *found, list(node.data_inputs[1:]))
