"""What the rules that replace a convolution need to know of it."""

from __future__ import annotations

from pocketgraph.graph import AttrValue, Node, opdefs


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
