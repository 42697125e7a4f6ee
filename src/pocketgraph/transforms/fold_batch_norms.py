"""Folds a multiplication behind a convolution or matrix product into its weights."""

from __future__ import annotations

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, const, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms._constants import checked_constant
from pocketgraph.transforms._weights import scaled_weights
from pocketgraph.transforms.tool import transform

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
def fold_batch_norms(graph: Graph) -> Graph:
    """Folds ``Mul(conv, constant)`` into the convolution's weights; run fold_constants first.

    Given:   x = Placeholder(dtype=float)
             w = Const(float [[1.0, 2.0]])
             y = MatMul(x, w, T=float)
             scale = Const(float [10.0, 100.0])
             scaled = Mul(y, scale, T=float)
    Result:  w = Const(float [[10.0, 200.0]])
             x = Placeholder(dtype=float)
             scaled = MatMul(x, w, T=float)

    Works on Conv2D, DepthwiseConv2dNative and MatMul with constant float weights, in one pass; a match whose
    convolution, weights or multiplier is used elsewhere is left alone.

    Differs from the original: convolutions or weights that are outputs of the graph or that the convolution's own input
    reads, types other than float, and NCHW convolutions (where such a Mul does not scale channels) are left alone;
    MatMul with transpose_b is scaled along the right axis.

    Raises:
        TransformError: the multiplier is not a vector of one factor for each output channel.
    """
    outputs = {node_name(ref) for ref in graph.outputs}

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        conv, source, weights, scale = (match[part] for part in ("conv", "input", "weights", "scale"))
        original = [match.node, conv, source, weights, scale]
        values, factors = checked_constant(weights), checked_constant(scale)
        elsewhere = used | outputs | {node_name(ref) for ref in source.inputs}
        if {conv.name, weights.name, scale.name} & elsewhere or len({node.name for node in original}) < 5:
            return original
        if values.dtype is not FLOAT or factors.dtype is not FLOAT or conv.attr("data_format", b"NHWC") != b"NHWC":
            return original
        scaled = scaled_weights(conv, values, factors.numpy())
        if scaled is None:
            raise TransformError(
                f"Mul constant input to batch norm has bad shape: {list(factors.shape)}",
                where=f"node '{match.node.name}'",
            )
        return [const(weights.name, scaled), source, conv.replace(name=match.node.name)]

    return replace_matches(graph, SCALED_PRODUCT, rewrite).graph
