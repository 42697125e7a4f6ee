"""A resize and a mirrored border before a convolution become part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from pocketgraph.graph import AttrValue, Graph, Node, const, node_name
from pocketgraph.passes.fusible_convolutions import is_plain, takes_resize

KEPT = ("strides", "padding")


def fuse_resize_and_conv(graph: Graph, output_node_names: Iterable[str]) -> Graph:
    """Fuses ResizeBilinear, MirrorPad or both into the Conv2D behind them; nodes that nothing uses are dropped.

    ::

        r = ResizeBilinear(x, size)
        p = MirrorPad(r, paddings)    ->   y = FusedResizeAndPadConv2D(x, size, paddings, w)
        y = Conv2D(p, w)

    Without a resize it is FusedPadConv2D; without a border ``y_dummy_paddings`` are zeros. New nodes come last.

    Differs from the original: what the fused ops do not compute is left alone, which are convolutions in NCHW, with
    dilations or explicit paddings, and resizes with half_pixel_centers or of other types than the convolution (the
    original makes graphs of them that give other numbers or do not load).
    """
    uses = Counter(node_name(ref) for node in graph for ref in node.inputs)
    uses.update(output_node_names)
    new: list[Node] = []
    for node in graph:
        if node.op != "Conv2D" or len(node.data_inputs) != 2:
            continue
        before = graph.find_producer(node.data_inputs[0])
        pad = before if before is not None and before.op == "MirrorPad" else None
        source = graph.find_producer(pad.data_inputs[0]) if pad is not None else before
        resize = source if source is not None and source.op == "ResizeBilinear" else None
        if resize is not None and not takes_resize(node, resize):
            resize = None
        if not is_plain(node) or (pad is None and resize is None):
            continue
        uses[node.name] = 0
        for fused in (pad, resize):
            if fused is not None:
                uses[fused.name] -= 1
        new += _fused(node, pad, resize)
    kept = [node for node in graph if uses[node.name] > 0]
    return graph.replace([*kept, *new])


def _fused(conv: Node, pad: Node | None, resize: Node | None) -> list[Node]:
    made: list[Node] = []
    if pad is not None:
        paddings, mode = pad.data_inputs[1], pad.attrs.get("mode", b"REFLECT")
    else:
        paddings, mode = f"{conv.name}_dummy_paddings", b"REFLECT"
        made.append(const(paddings, np.zeros((4, 2), np.int32)))
    attrs: dict[str, AttrValue] = {"T": conv.dtype(), "mode": mode}
    attrs.update({key: conv.attrs[key] for key in KEPT if key in conv.attrs})
    if resize is not None:
        attrs["resize_align_corners"] = resize.attr("align_corners", False)
        inputs = [*resize.data_inputs[:2], paddings, conv.data_inputs[1]]
        return [*made, Node(conv.name, "FusedResizeAndPadConv2D", inputs, attrs)]
    assert pad is not None
    return [*made, Node(conv.name, "FusedPadConv2D", [pad.data_inputs[0], paddings, conv.data_inputs[1]], attrs)]
