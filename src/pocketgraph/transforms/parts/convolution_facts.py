"""What the rules that replace a convolution need to know of it."""

from __future__ import annotations

from pocketgraph.graph import AttrValue, Node, opdefs
from pocketgraph.graph.pattern import Match
from pocketgraph.passes.fusible_convolutions import is_plain, takes_resize
from pocketgraph.transforms.compat import Compat


def copied(node: Node, *names: str) -> dict[str, AttrValue]:
    """These attributes of a node; the op's defaults where it leaves them out.

    Raises:
        GraphError: the node lacks one that has no default.
    """
    return {name: opdefs.attr_or_default(node, name) for name in names}


def fuses_resize(match: Match, compat: Compat) -> bool:
    """Whether ``FusedResizeAndPadConv2D`` computes what a matched convolution and its ``resize`` do."""
    return compat.original or (is_plain(match.node) and takes_resize(match.node, match["resize"]))


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
