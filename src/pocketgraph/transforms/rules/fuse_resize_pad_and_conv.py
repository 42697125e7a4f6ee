"""Makes one op of a bilinear resize, a mirrored padding and the convolution behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.parts.convolution_facts import copied, fuses_resize, with_resize
from pocketgraph.transforms.parts.near_misses import source_of
from pocketgraph.transforms.tool import transform

RESIZED_AND_PADDED = Pattern(
    "Conv2D",
    [Pattern("MirrorPad", [Pattern("ResizeBilinear", name="resize"), Pattern("*", name="sizes")], name="pad"), "*"],
)


@transform
def fuse_resize_pad_and_conv(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Replaces ``Conv2D(MirrorPad(ResizeBilinear(x, size), sizes), weights)`` by ``FusedResizeAndPadConv2D``.

    Given:   x = Placeholder(dtype=float)
             size = Const(int32 [4, 4])
             resize = ResizeBilinear(x, size, T=float, align_corners=false)
             sizes = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
             pad = MirrorPad(resize, sizes, T=float, mode="REFLECT")
             w = Const(float [[[[2.0]]]])
             y = Conv2D(pad, w, T=float, padding="VALID", strides=[1,1,1,1])
    Result:  x = Placeholder(dtype=float)
             size = Const(int32 [4, 4])
             w = Const(float [[[[2.0]]]])
             sizes = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
             y = FusedResizeAndPadConv2D(x, size, sizes, w, T=float, padding="VALID", strides=[1,1,1,1],
                 resize_align_corners=false, mode="REFLECT")

    Differs from the original: NCHW and dilated convolutions, and resizes with half_pixel_centers or of other types
    than the convolution, are left alone (there, they come out wrong), and so are resizes and paddings that are outputs
    of the graph (there, they are lost); the convolution keeps its control inputs.
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        pad = match["pad"]
        fused = with_resize(match, pad.data_inputs[1], copied(pad, "mode")["mode"], compat)
        return [match.inputs[1].node, match["sizes"], fused]

    def accept(match: Match) -> bool:
        return fuses_resize(match, compat)

    return replace_matches(graph, RESIZED_AND_PADDED, rewrite, accept=accept, keep_ends=not compat.original).graph


def near_misses(graph: Graph, arguments: Mapping[str, Any]) -> Iterator[Miss]:
    for node in graph:
        if node.op == "Conv2D" and node.data_inputs:
            pad = source_of(graph, node.data_inputs[0])
            if pad is not None and pad.op in ("Pad", "PadV2") and pad.data_inputs:
                resize = source_of(graph, pad.data_inputs[0])
                if resize is not None and resize.op == "ResizeBilinear":
                    yield Miss(node.name, f"between it and the resize stands {pad.op} '{pad.name}', not MirrorPad")
