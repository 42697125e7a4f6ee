"""What the rules that replace a convolution need to know of it."""

from __future__ import annotations

from pocketgraph.graph import AttrValue, Node, opdefs
from pocketgraph.graph.pattern import Match
from pocketgraph.transforms.compat import Compat


def is_plain(conv: Node) -> bool:
    """Whether a convolution is NHWC, without dilation and explicit padding, as the fused ops take it for granted."""
    return (
        conv.attr("data_format", b"NHWC") == b"NHWC"
        and set(conv.attr("dilations", ())) <= {1}
        and conv.attr("padding") in (b"SAME", b"VALID")
    )


def copied(node: Node, *names: str) -> dict[str, AttrValue]:
    """These attributes of a node; the op's defaults where it leaves them out.

    Raises:
        GraphError: the node lacks one that has no default.
    """
    return {name: opdefs.attr_or_default(node, name) for name in names}


def takes_resize(match: Match, compat: Compat) -> bool:
    """Whether ``FusedResizeAndPadConv2D`` computes what a matched convolution and its ``resize`` do."""
    conv, resize = match.node, match["resize"]
    fits = is_plain(conv) and not resize.attr("half_pixel_centers") and resize.attr("T") is conv.attr("T")
    return compat.original or fits


def with_resize(match: Match, paddings: str, mode: AttrValue, compat: Compat) -> Node:
    """A matched convolution, the ``resize`` in front of it and the paddings between them as one node."""
    conv, resize = match.node, match["resize"]
    attrs = {
        **copied(conv, "T", "padding", "strides"),
        "resize_align_corners": copied(resize, "align_corners")["align_corners"],
        "mode": mode,
    }
    control = () if compat.original else conv.control_inputs
    inputs = (*resize.data_inputs, paddings, conv.data_inputs[1], *control)
    return Node(conv.name, "FusedResizeAndPadConv2D", inputs, attrs)
