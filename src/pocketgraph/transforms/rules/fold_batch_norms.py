"""Folds a multiplication behind a convolution or matrix product into its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, const, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.passes.channel_scaling import output_channels, overflows, scaled_weights
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.original.numbering import duplicate_names
from pocketgraph.transforms.parts.affine_folding import PRODUCTS, SUMS, fold_affine
from pocketgraph.transforms.parts.constants_of_nodes import checked_constant
from pocketgraph.transforms.parts.near_misses import around, fold_miss, is_constant_like, source_of
from pocketgraph.transforms.tool import transform

TRIGGERS = PRODUCTS | {"Sub"}
SCALED_PRODUCT = Pattern(
    "Mul",
    [
        Pattern(
            "Conv2D|MatMul|DepthwiseConv2dNative",
            [Pattern("*", name="input"), Pattern("Const", name="weights")],
            name="conv",
        ),
        Pattern("Const", name="scale"),
    ],
)


@transform
def fold_batch_norms(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Folds a multiplication by constants beside a convolution into its weights; run fold_constants first.

    Given:   x = Placeholder(dtype=float)
             w = Const(float [[1.0, 2.0]])
             y = MatMul(x, w, T=float)
             scale = Const(float [10.0, 100.0])
             scaled = Mul(y, scale, T=float)
    Result:  w = Const(float [[10.0, 200.0]])
             x = Placeholder(dtype=float)
             scaled = MatMul(x, w, T=float)

    Works on Conv2D, DepthwiseConv2dNative and MatMul with constant float weights, in one pass; a match whose
    convolution or weights are used elsewhere is left alone.

    Differs from the original: convolutions or weights that are inputs or outputs of the graph or that the convolution's
    own input reads, types other than float, and NCHW convolutions (where such a Mul does not scale channels) are left
    alone; MatMul with transpose_b is scaled along the right axis. Then chains of Mul, RealDiv, Add, Sub and BiasAdd
    with constants (or what Rsqrt and the like make of constants) are folded, too: NCHW, of volumes, and behind
    transposed convolutions; behind the convolution, where one of them multiplies; and before it, where no padding meets
    what they add, unless they bring inputs of many units to one scale. What is left of a sum becomes one BiasAdd.

    Raises:
        TransformError: the multiplier is not a vector of one factor for each output channel.
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        conv, source, weights, scale = (match[part] for part in ("conv", "input", "weights", "scale"))
        original = [match.node, conv, source, weights, scale]
        values, factors = checked_constant(weights), checked_constant(scale)
        elsewhere = used if compat.original else used | {node_name(ref) for ref in source.inputs}
        if {conv.name, weights.name, scale.name} & elsewhere or len({node.name for node in original}) < 5:
            names = [node.name for node in original]
            duplicate_names().update(name for name in names if compat.original and names.count(name) > 1)
            return original
        is_float = values.dtype is FLOAT and factors.dtype is FLOAT
        if not compat.original and not (is_float and conv.attr("data_format", b"NHWC") == b"NHWC"):
            return original
        along = conv.with_attrs(transpose_b=None) if compat.original else conv  # the original does not look at it
        scaled = scaled_weights(along, values, factors.numpy())
        if scaled is None:
            if not compat.original and factors.size in (1, output_channels(conv, values.shape)):
                return original  # for fold_affine
            raise TransformError(
                f"Mul constant input to batch norm has bad shape: {list(factors.shape)}",
                where=f"node '{match.node.name}'",
            )
        if not is_float or (not compat.original and overflows(values, scaled)):
            return original
        return [const(weights.name, scaled), source, conv.replace(name=match.node.name)]

    graph = replace_matches(graph, SCALED_PRODUCT, rewrite, keep_ends=not compat.original).graph
    return graph if compat.original else fold_affine(graph, SUMS | PRODUCTS, TRIGGERS)


def near_misses(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    for node in graph:
        if node.op != "Mul" or len(node.data_inputs) != 2:
            continue
        found = around(graph, node)
        if found is None:
            continue
        product, single, between = found
        inner = (between or product).name
        others = [ref for ref in node.data_inputs if node_name(ref) != inner]
        if single is node:  # before a convolution: only what is constant is of interest
            others = [ref for ref in others if graph.constant(ref) is not None]
            if not others:
                continue
        elif all(source_of(graph, ref) is not None and not is_constant_like(graph, ref) for ref in others):
            continue  # a product of two signals is no batch normalization
        yield fold_miss(graph, node, product, single, between, others)
