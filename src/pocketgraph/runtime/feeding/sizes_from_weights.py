"""The open sizes of a picture or a series as the weights behind it tell them.

The numbers in a row grow with the size, so that it is found by inferring shapes of a few.

x = Placeholder(dtype=float, shape=[?,?,?,1])        x has the shape [1,28,28,1]
p = MaxPool(x, ksize=[1,2,2,1], strides=[1,2,2,1])
r = Reshape(p, [-1, 196])
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import CONVOLUTIONS, PASSES
from pocketgraph.graph.order import descendants, reachable

LARGEST = 2048  # pixels of a side up to which is searched
LONGEST = 1 << 20  # steps of a series
PUBLISHED = (224, 299, 227)  # sides that many networks take
ROUND = 50
MOST_ASKED = 8  # places behind an input
LEAST_WHOLE = 4  # the side of a window that covers the whole map, where windows do not overlap
FLATTENING = PASSES | {"Reshape"}


def told_sizes(
    graph: Graph, name: str, dims: Sequence[int | None], chosen: Mapping[str, tuple[int, ...]], fetches: Sequence[str],
    types: Mapping[str, DType],
) -> tuple[int, ...] | None:  # fmt: skip
    """The shape of an input with which the first weights that take whole rows of what is made of it fit, or the last
    average is that of the whole map; None where nothing such is behind it, or no size fits.

    Args:
        name: of the input.
        dims: what is known of its shape.
        chosen: shapes of all inputs, by node name; that of this one is kept where it fits.
        fetches: what is computed.
        types: of all inputs.
    """
    if None not in dims[1:]:
        return None
    needed = reachable(graph, fetches, data_only=True, missing_ok=True)
    behind = {name, *descendants(graph, [name])} & needed
    for tensor, axes, count in islice(_rows(graph, behind), MOST_ASKED):
        search = _SizeSearch(graph, name, dims, chosen, types, tensor, axes)
        usual = chosen.get(name, search.shape(PUBLISHED[0]))
        if search.count_of(usual) == count and search.grows:
            return usual
        sizes = search.fitting(count)
        if sizes is not None:
            pads = all(graph[one].attr("padding") != b"VALID" for one in behind & reachable(graph, [node_name(tensor)]))
            return search.shape(usual_size(*sizes, pads=pads))
    return None


def averages_whole_maps(graph: Graph, name: str) -> bool:
    """Whether an average over a window, and no other window behind it, tells the size of an input."""
    return any(_averages_all(graph, graph[one]) for one in descendants(graph, [name]))


def usual_size(least: int, most: int, *, pads: bool) -> int:
    """The size that a person most likely meant, of those that give the same map: the one that needs no padding, else a
    published, round or often halved one."""
    sizes = range(least, most + 1)
    if pads:
        return most
    published = [size for size in PUBLISHED if size in sizes]
    rounded = [size for size in sizes if size % ROUND == 0]
    return (published or rounded or [max(sizes, key=lambda size: size & -size)])[0]


class _SizeSearch:
    """How many numbers a tensor has along some axes, by the open sizes of one input."""

    def __init__(
        self, graph: Graph, name: str, dims: Sequence[int | None], chosen: Mapping[str, tuple[int, ...]],
        types: Mapping[str, DType], tensor: str, axes: slice,
    ) -> None:  # fmt: skip
        self.graph, self.name, self.dims, self.tensor, self.axes = graph, name, dims, tensor, axes
        self.chosen, self.types = chosen, types

    @property
    def largest(self) -> int:
        """The size up to which is searched."""
        return LARGEST if self.dims[1:].count(None) > 1 else LONGEST

    @property
    def grows(self) -> bool:
        """Whether the numbers depend on the size at all."""
        return self.count_of(self.shape(self.largest)) != self.count_of(self.shape(self.largest // 2))

    def shape(self, size: int) -> tuple[int, ...]:
        """The input's shape with this size wherever one is open."""
        sizes = (1 if at == 0 else size for at in range(len(self.dims)))
        return tuple(new if known is None else known for known, new in zip(self.dims, sizes, strict=True))

    def count_of(self, shape: tuple[int, ...]) -> int:
        """The numbers; 0 where the shape is too small."""
        from pocketgraph.kernels.shapes import infer

        shapes = {**self.chosen, self.name: shape}
        feeds = {f"{key}:0": (self.types.get(key, FLOAT), Shape(sizes)) for key, sizes in shapes.items()}
        try:
            found = infer(self.graph, feeds, outputs=[self.tensor], strict=True, complete=False).shape(self.tensor).dims
        except GraphError:
            return 0
        return math.prod(size or 0 for size in found[self.axes]) if found else 0

    def fitting(self, count: int) -> tuple[int, int] | None:
        """The least and the largest size that give as many numbers; None where none does."""
        if not 0 < count <= self.count_of(self.shape(self.largest)) or not self.grows:
            return None
        most = 1
        while most < self.largest and self.count_of(self.shape(most)) <= count:
            most *= 2
        sizes = range(most + 1)

        def counted(size: int) -> int:
            return self.count_of(self.shape(size)) if size else 0

        least = bisect_left(sizes, count, key=counted)
        above = bisect_left(sizes, count + 1, key=counted)
        return (least, above - 1) if least < above <= most else None


def _rows(graph: Graph, behind: set[str]) -> Iterator[tuple[str, slice, int]]:
    """Maps of which it is known how many numbers they have along these axes: those that are taken as rows by weights,
    or apart, and the average of a whole map."""
    for node in graph:
        if node.name not in behind or not node.data_inputs:
            continue
        count = _row_length(graph, node)
        if count:
            start = graph.find_producer(node.data_inputs[0])
            flat = node if node.op == "Reshape" else None
            while start is not None and start.op in FLATTENING and start.name in behind and start.data_inputs:
                flat = start if start.op == "Reshape" else flat
                start = graph.find_producer(start.data_inputs[0])
            if flat is not None and node_name(flat.data_inputs[0]) in behind:
                yield canonical(flat.data_inputs[0]), slice(1, None), count
        elif node.op == "Unpack":
            axis = node.attr("axis", 0)
            yield canonical(node.data_inputs[0]), slice(axis, axis + 1 or None), node.attr("num", 0)
        elif node.op == "Split" and (place := graph.constant(node.data_inputs[0])) is not None:
            axis = int(place.numpy())
            yield canonical(node.data_inputs[1]), slice(axis, axis + 1 or None), node.attr("num_split", 0)
        elif _averages_all(graph, node):
            planes = node.attr("data_format") == b"NCHW"
            yield canonical(node.name), slice(2, None) if planes else slice(1, -1), 1


def _row_length(graph: Graph, node: Node) -> int:
    """How long the rows are that a product with weights takes, or that a Reshape makes; 0 for other nodes."""
    value = graph.constant(node.data_inputs[1]) if len(node.data_inputs) > 1 else None
    if value is None:
        return 0
    if node.op == "MatMul" and len(value.shape) == 2:
        return value.shape[1 if node.attr("transpose_b") else 0]
    if node.op == "Reshape" and value.size == 2:
        return max(int(value.numpy().reshape(-1)[-1]), 0)
    return 0


def _averages_all(graph: Graph, node: Node) -> bool:
    """Whether a node averages over a window behind which there is no other: that is the whole map, then."""
    window, strides = node.attr("ksize"), node.attr("strides")
    if node.op != "AvgPool" or node.attr("padding") != b"VALID" or not isinstance(window, tuple):
        return False
    side = max(window)
    overlaps = set(strides) == {1} and side > 2
    if not overlaps and not max(strides) == side >= LEAST_WHOLE:
        return False
    return not any(_has_window(graph, graph[name]) for name in descendants(graph, [node.name]))


def _has_window(graph: Graph, node: Node) -> bool:
    if node.op in CONVOLUTIONS:
        weights = graph.constant(node.data_inputs[1])
        return weights is None or any(size > 1 for size in weights.shape[:2])
    return node.attr("ksize") is not None or node.op.startswith("Resize")
