"""Which convolutions TensorFlow's fused ops, FusedPadConv2D and FusedResizeAndPadConv2D, compute."""

from __future__ import annotations

from pocketgraph.graph import Node


def is_plain(conv: Node) -> bool:
    """Whether a convolution is NHWC, without dilation and explicit padding, as the fused ops take it for granted."""
    return (
        conv.attr("data_format", b"NHWC") == b"NHWC"
        and set(conv.attr("dilations", ())) <= {1}
        and conv.attr("padding") in (b"SAME", b"VALID")
    )


def takes_resize(conv: Node, resize: Node) -> bool:
    """Whether ``FusedResizeAndPadConv2D`` computes what a plain convolution behind a ResizeBilinear does."""
    return not resize.attr("half_pixel_centers") and resize.attr("T") is conv.attr("T")
