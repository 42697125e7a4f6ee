"""Fuses what stands in front of convolutions into them: all three rules for that."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.rules.fuse_pad_and_conv import fuse_pad_and_conv
from pocketgraph.transforms.rules.fuse_resize_and_conv import fuse_resize_and_conv
from pocketgraph.transforms.rules.fuse_resize_pad_and_conv import fuse_resize_pad_and_conv
from pocketgraph.transforms.tool import transform


@transform
def fuse_convolutions(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Runs fuse_resize_pad_and_conv, fuse_resize_and_conv and fuse_pad_and_conv.

    Given:   x = Placeholder(dtype=float)
             paddings = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
             padded = MirrorPad(x, paddings, T=float, Tpaddings=int32, mode="REFLECT")
             w = Const(float [[[[1.0]]]])
             conv = Conv2D(padded, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
    Result:  w = Const(float [[[[1.0]]]])
             x = Placeholder(dtype=float)
             paddings = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
             conv = FusedPadConv2D(x, paddings, w, T=float, padding="VALID", strides=[1,1,1,1], mode="REFLECT")

    Differs from the original: there is no rule of this name there, although its manual describes one.
    """
    for rule in (fuse_resize_pad_and_conv, fuse_resize_and_conv, fuse_pad_and_conv):
        graph = rule(graph, compat=compat)
    return graph
