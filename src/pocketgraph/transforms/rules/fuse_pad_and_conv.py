"""Makes one op of a mirrored padding and the convolution behind it."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.passes.fusible_convolutions import is_plain
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.convolution_facts import copied
from pocketgraph.transforms.parts.near_misses import fusion_misses
from pocketgraph.transforms.tool import transform

PADDED = Pattern(
    "Conv2D", [Pattern("MirrorPad", [Pattern("*", name="data"), Pattern("*", name="sizes")], name="pad"), "*"]
)


@transform
def fuse_pad_and_conv(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Replaces ``Conv2D(MirrorPad(x, sizes), weights)`` by ``FusedPadConv2D``, which does not store what lies between.

    Given:   x = Placeholder(dtype=float)
             sizes = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
             pad = MirrorPad(x, sizes, T=float, mode="REFLECT")
             w = Const(float [[[[2.0]]]])
             y = Conv2D(pad, w, T=float, padding="VALID", strides=[1,1,1,1])
    Result:  w = Const(float [[[[2.0]]]])
             x = Placeholder(dtype=float)
             sizes = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
             y = FusedPadConv2D(x, sizes, w, T=float, padding="VALID", strides=[1,1,1,1], mode="REFLECT")

    Differs from the original: NCHW and dilated convolutions are left alone (there, they come out wrong), and
    so are those behind a padding that is an output of the graph (there, it is lost); the convolution keeps its control
    inputs.
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        conv, pad = match.node, match["pad"]
        attrs = {**copied(conv, "T", "padding", "strides"), **copied(pad, "mode")}
        inputs = (*pad.data_inputs, conv.data_inputs[1], *(() if compat.original else conv.control_inputs))
        weights = match.inputs[1].node
        return [weights, match["data"], match["sizes"], Node(conv.name, "FusedPadConv2D", inputs, attrs)]

    def accept(match: Match) -> bool:
        return compat.original or is_plain(match.node)

    return replace_matches(graph, PADDED, rewrite, accept=accept, keep_ends=not compat.original).graph


near_misses = fusion_misses("MirrorPad", "MirrorPad")
