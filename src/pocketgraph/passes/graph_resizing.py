"""How a graph that takes pictures of any size resizes them itself, so that they can come to it resized already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.op_traits import PASSES_OR_ENTERS, ops_with
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.shapes import infer

HOW = ("align_corners", "half_pixel_centers")
"""Attributes of resizing nodes."""
_HANDING_ON = frozenset({
    "Cast", "ExpandDims", "TensorArrayScatterV3", "TensorArrayReadV3", "TensorListFromTensor", "TensorListGetItem",
})  # fmt: skip
"""Not a trait: what keeps a picture's pixels, and hands pictures to a loop and takes one there."""


@dataclass(frozen=True)
class GraphResizing:
    """A graph's own resizing of the pictures of an input.

    Attributes:
        height, width: what it brings them to.
        op: ``ResizeBilinear`` or ``ResizeNearestNeighbor``.
        align_corners, half_pixel_centers: as that node has them.
    """

    height: int
    width: int
    op: str
    align_corners: bool
    half_pixel_centers: bool

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.height, self.width

    @property
    def special(self) -> str:
        """What sets it apart from ResizeBilinear as it is by default; "" for nothing."""
        words = [self.op] if self.op != "ResizeBilinear" else []
        return " with ".join(words + [f"{name}=true" for name in HOW if getattr(self, name)])

    def __call__(self, pixels: Array) -> Array:
        """Pixels [height, width, channels] in this size, as the graph's node makes them."""
        from pocketgraph.kernels.image.resizing import resize_bilinear, resize_nearest_neighbor

        resize: Any = resize_bilinear if self.op == "ResizeBilinear" else resize_nearest_neighbor
        size = np.array(self.size, np.int32)
        how = {name: getattr(self, name) for name in HOW}
        found: Array = resize(pixels[np.newaxis], size, **how)[0]
        return found


def graph_resizing(graph: Graph, name: str) -> GraphResizing | None:
    """How a graph resizes the pictures of an input to one size, so that each place depends on a few pixels; None where
    it takes them otherwise too, such as by the means of areas, or where their size decides it.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=uint8, shape=[1,?,?,3])
    ...     size = Const(int32 [96, 64])
    ...     small = ResizeBilinear(x, size, T=uint8, align_corners=true)
    ... ''')
    >>> graph_resizing(graph, "x")
    GraphResizing(height=96, width=64, op='ResizeBilinear', align_corners=True, half_pixel_centers=False)

    Args:
        name: of the input's node, or its tensor.
    """
    nodes = resize_nodes(graph, node_name(name))
    if not nodes or any(node.op not in ("ResizeBilinear", "ResizeNearestNeighbor") for node in nodes):
        return None
    inferred = infer(graph)
    found = set()
    for node in nodes:
        size = inferred.value(canonical(node.inputs[1]))
        sides = () if size is None else tuple(size.reshape(-1).tolist())
        found.add((*sides, node.op, *(node.attr(how) is True for how in HOW)))
    one = found.pop()
    if found or len(one) != 5 or min(one[:2]) < 1:
        return None
    return GraphResizing(*one)


def picture_axes(graph: Graph, name: str, dims: Sequence[int | None]) -> tuple[int, int]:
    """The axes of height and width of an input of rank 3 or 4 whose pictures the graph resizes.

    Of rank 3 it is one picture, [height, width, channels], or several that get their only channel from the graph.
    """
    if len(dims) != 3:
        return 1, 2
    inferred = infer(graph)
    taken = (inferred.shape(canonical(node.inputs[0])).dims for node in resize_nodes(graph, node_name(name)))
    return (1, 2) if any(shape and shape[-1] == 1 != dims[-1] for shape in taken) else (0, 1)


def resize_nodes(graph: Graph, name: str) -> list[Node]:
    """The nodes that bring a picture to a size, where all that reads it leads to such; none elsewhere."""
    found = []
    for user in graph.consumers.get(name, ()):
        if user.op in ops_with("shape"):
            continue
        behind = [user] if user.op in ops_with("resize") else []
        if not behind and _keeps_places(graph, user):
            behind = resize_nodes(graph, user.name)
        if not behind:
            return []
        found += behind
    return found


def _keeps_places(graph: Graph, node: Node) -> bool:
    """Whether a node computes each pixel's values by themselves, and with constants alone, or hands pictures to a loop,
    one a round, as ``map_fn`` does."""
    if node.op in PASSES_OR_ENTERS | _HANDING_ON:
        return True
    others = [ref for ref in node.data_inputs if graph.constant(ref) is None]
    return len(others) == 1 and node.op in ops_with("sum", "difference", "product") | {"RealDiv"}
