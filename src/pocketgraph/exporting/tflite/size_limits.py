"""Limits of sizes: where a graph cuts off, or goes another way, from a size on that none of those tried reaches.

Given:   y = StridedSlice(x, 0, 1000), and x has 33 and 65 rows when it is tried
Result:  the programs take all rows, which is not what the graph does with 1,200
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.exporting.model import EntryPoint
from pocketgraph.graph import Graph, Node, Shape
from pocketgraph.graph.op_traits import ops_with, slice_masks, sliced_axes
from pocketgraph.kernels.shapes import Inferred, infer

NO_LIMIT = 2**30
"""Ends of slices that are meant as "all"; no size of a tensor in LiteRT is as large."""
LIMIT = {"Minimum", "Maximum", *ops_with("order")}
"""Not a trait: ops that take one of two sizes, or say which is larger."""


def unreached_limit(graph: Graph, entry: EntryPoint, axes: Sequence[Sequence[int]]) -> str:
    """The node that limits a size by a number beyond it; "" where there is none.

    Args:
        graph: has the entry point's tensors.
        entry: its inputs have the largest sizes that were tried.
        axes: which of each input's axes are open.
    """
    outputs = [port.tensor for port in entry.outputs]
    sizes = [(port, port.sizes or ()) for port in entry.inputs]
    tried = infer(graph, {port.tensor: (port.dtype, Shape(given)) for port, given in sizes}, outputs=outputs)
    feeds = {
        port.tensor: (port.dtype, Shape([None if axis in opened else size for axis, size in enumerate(given)]))
        for (port, given), opened in zip(sizes, axes, strict=True)
    }
    opened = infer(graph, feeds, outputs=outputs)
    for node in graph:
        if node.op == "StridedSlice":
            if _is_cut_beyond(node, tried, opened):
                return node.name
        elif node.op in LIMIT and _is_limited(node, tried, opened):
            return node.name
    return ""


def _is_cut_beyond(node: Node, tried: Inferred, opened: Inferred) -> bool:
    """Whether a slice begins or ends at a number beyond a size that is open."""
    source, *ends = node.data_inputs[:3]
    sizes, dims = tried.shape(source).dims, opened.shape(source).dims
    masks = slice_masks(node.attr)
    for ref, mask in zip(ends, (masks["begin"], masks["end"]), strict=True):
        value = opened.value(ref)
        if value is None or sizes is None:
            continue
        for place, axis in sliced_axes(masks, value.size).items():
            size = sizes[axis]
            if size is None or mask & 1 << place or (dims is not None and dims[axis] is not None):
                continue
            if size < abs(int(value.flat[place])) < NO_LIMIT:
                return True
    return False


def _is_limited(node: Node, tried: Inferred, opened: Inferred) -> bool:
    """Whether a number is larger than the size beside it, which is open."""
    one, other = node.data_inputs
    for open_, fixed in ((one, other), (other, one)):
        size, number = tried.value(open_), opened.value(fixed)
        if size is None or number is None or opened.value(open_) is not None or size.dtype.kind not in "iuf":
            continue
        if bool(np.any(np.abs(number) > np.abs(size))):
            return True
    return False
