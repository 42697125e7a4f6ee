"""A graph that takes so many samples at a time, made one that takes a single one, as devices have.

x = Placeholder(shape=[32,24,24,3]) ─ … ─ Reshape(·, [32,-1]) ─ …   becomes   x[1,24,24,3] ─ … ─ Reshape(·, [1,-1]) ─ …
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.datasets.picture_input import is_single_picture
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, Shape, Tensor, node_name
from pocketgraph.graph.op_traits import PLACEHOLDERS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime import Session
from pocketgraph.runtime.feeding.default_tensors import needed_placeholders
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

EQUAL = 1e-5  # of an output's peak: sums of other batch sizes are added up in another order


def fixed_batch(graph: Graph, outputs: Sequence[str]) -> int:
    """How many samples a graph takes at a time; 1 where it leaves that open, or its inputs differ in it."""
    sizes = {_first(graph[node_name(name)]) for name in needed_placeholders(graph, list(outputs))}
    size = sizes.pop() if len(sizes) == 1 else None
    return size if size is not None and size > 1 else 1


def is_fixed_picture(graph: Graph, outputs: Sequence[str]) -> bool:
    """Whether what looks like a batch may be the rows of one picture."""
    shapes = [graph[node_name(name)].shape() for name in needed_placeholders(graph, list(outputs))]
    return len(shapes) == 1 and shapes[0] is not None and is_single_picture(shapes[0].dims)


def for_one_sample(graph: Graph, outputs: Sequence[str]) -> Graph | None:
    """The graph for a single sample; None where the results of each sample of a batch would not be what they were.

    Sizes of inputs and the first sizes of reshapes are changed; made-up samples show whether that was all.

    Args:
        graph: a frozen graph of a fixed batch.
        outputs: what it computes.
    """
    batch = fixed_batch(graph, outputs)
    inputs = [node_name(name) for name in needed_placeholders(graph, list(outputs))]
    needed = reachable(graph, [node_name(name) for name in outputs])
    shapes = {
        node_name(node.data_inputs[1])
        for node in graph
        if node.name in needed and node.op in ops_with("view") and len(node.data_inputs) > 1
    }

    def opened(node: Node) -> Node:
        if node.name in inputs and node.op in PLACEHOLDERS:
            sizes = node.shape()
            return node.replace(attrs={**node.attrs, "shape": Shape([1, *(sizes.dims or ())[1:]])}) if sizes else node
        if node.name in shapes and node.op == "Const":
            return _of_one(node, batch)
        return node

    made = graph.map_nodes(opened)
    try:
        feeds = synthetic_feeds(graph, list(outputs), 0, {})
        with Session(graph, engine="reference") as whole, Session(made, engine="reference") as single:
            wanted = whole.run(list(outputs), feeds)
            for at in (0, batch - 1):
                found = single.run(list(outputs), {name: value[at : at + 1] for name, value in feeds.items()})
                if not all(_same(one, all_, at, batch) for one, all_ in zip(found, wanted, strict=True)):
                    return None
    except PocketgraphError:
        return None
    return made


def _first(node: Node) -> int | None:
    shape = node.shape()
    return shape.dims[0] if shape is not None and shape.dims else None


def _of_one(node: Node, batch: int) -> Node:
    """A shape whose first size is the batch's with 1 there; any other constant as it is."""
    value = node.attrs["value"]
    if not isinstance(value, Tensor) or value.dtype.numpy.kind != "i" or value.size < 1:
        return node
    sizes = value.numpy()
    if sizes.ndim != 1 or sizes[0] != batch:
        return node
    return node.replace(attrs={**node.attrs, "value": Tensor.from_numpy(np.array([1, *sizes[1:]], sizes.dtype))})


def _same(one: Array, whole: Array, at: int, batch: int) -> bool:
    if whole.ndim < 1 or len(whole) != batch or one.shape != (1, *whole.shape[1:]):
        return False
    if whole.dtype.kind not in "fc":
        return bool(np.array_equal(one[0], whole[at]))
    peak = float(np.abs(whole).max(initial=0))
    return bool(np.abs(one[0] - whole[at]).max(initial=0) <= EQUAL * peak)
