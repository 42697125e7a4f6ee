"""Makes one op of a bilinear resize and the convolution behind it."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.convolution_facts import fuses_resize, with_resize
from pocketgraph.transforms.parts.near_misses import fusion_misses
from pocketgraph.transforms.tool import transform

RESIZED = Pattern("Conv2D", [Pattern("ResizeBilinear", name="resize"), "*"])


@transform
def fuse_resize_and_conv(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Replaces ``Conv2D(ResizeBilinear(x, size), weights)`` by ``FusedResizeAndPadConv2D`` with no padding.

    Given:   x = Placeholder(dtype=float)
             size = Const(int32 [4, 4])
             resize = ResizeBilinear(x, size, T=float, align_corners=false)
             w = Const(float [[[[2.0]]]])
             y = Conv2D(resize, w, T=float, padding="VALID", strides=[1,1,1,1])
    Result:  x = Placeholder(dtype=float)
             size = Const(int32 [4, 4])
             w = Const(float [[[[2.0]]]])
             y_dummy_paddings = Const(int32 [[0, 0], [0, 0], [0, 0], [0, 0]])
             y = FusedResizeAndPadConv2D(x, size, y_dummy_paddings, w, T=float, padding="VALID", strides=[1,1,1,1],
                 resize_align_corners=false, mode="REFLECT")

    Differs from the original: NCHW and dilated convolutions, and resizes with half_pixel_centers or of other types
    than the convolution, are left alone (there, they come out wrong), and so are resizes that are outputs of the graph
    (there, they are lost); the convolution keeps its control inputs.
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        paddings = const(f"{match.node.name}_dummy_paddings", np.zeros((4, 2), np.int32))
        return [match.inputs[1].node, paddings, with_resize(match, paddings.name, b"REFLECT", compat)]

    def accept(match: Match) -> bool:
        return fuses_resize(match, compat)

    return replace_matches(graph, RESIZED, rewrite, accept=accept, keep_ends=not compat.original).graph


near_misses = fusion_misses("Resize", "ResizeBilinear")
