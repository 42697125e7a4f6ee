"""The shapes of tensors in loops that stay loops."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.op_traits import ENTER
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.frames import is_loop_head
from pocketgraph.runtime.unrolling.array_origins import COUNTS, origin, reads, size, written

MOST_GUESSES = 12  # each guess is more general than the one before it


def with_loop_shapes(
    graph: Graph, plan: Plan, types: Mapping[str, tuple[DType, Shape]], inferred: Inferred, *, with_sizes: bool = False
) -> Inferred:
    """What is known of a graph's tensors when loops' variables are taken to keep the shapes that they begin with, as
    far as that is so; and elements of arrays of tensors to have the shapes of what is written.

    Args:
        plan: its needed nodes.
        types: type and shape of each tensor that is fed, by name.
        inferred: what is known so far.
        with_sizes: whether arrays have as many elements as they are made with.
    """
    heads: dict[str, list[str]] = {}
    enters: dict[str, str] = {}
    for name, item in plan.items.items():
        if item.node.op in ENTER:
            enters[name] = str(item.data[0])
        elif is_loop_head(item, plan.items):
            heads[name] = [str(endpoint) for endpoint in item.data]
    writes, array_reads = written(graph), list(reads(graph))
    guesses: dict[str, Shape] = {}
    values: dict[str, np.ndarray[Any, Any]] = {}
    counted = [node for node in graph if with_sizes and node.op in COUNTS and node.name in plan.items]
    is_optimistic = True  # at first a variable has the shape that it begins with, whatever comes round
    for _ in range(MOST_GUESSES + len(heads)):
        given = dict(types)
        for name, shape in guesses.items():
            dtype = inferred.dtype(f"{name}:0")
            if dtype is not None:
                given[f"{name}:0"] = (dtype, shape)
        for node in counted:
            count = size(graph, inferred, origin(graph, canonical(node.data_inputs[0])))
            if count is not None:
                values[f"{node.name}:0"] = np.array(count, np.int32)
        inferred = infer(graph, given, values, outputs=list(plan.items), complete=True)
        found = {name: inferred.shape(source) for name, source in enters.items()}
        for name, sources in heads.items():
            first, again = sorted(sources, key=lambda ref: node_name(ref) not in enters)
            begins = found.get(node_name(first)) or inferred.shape(first)
            found[name] = begins if is_optimistic else common_shape(begins, inferred.shape(again))
        for name, array, more in array_reads:
            elements = [Shape(s.dims[less:]) for ref, less in writes.get(array, ())
                        for s in [inferred.shape(ref)] if s.dims is not None]  # fmt: skip
            if elements and name in plan.items:
                rows = _rows(graph[name], inferred, size(graph, inferred, array)) if with_sizes else None
                shape = Shape([*[rows] * more, *reduce(common_shape, elements)])
                is_better = inferred.shape(name).dims is None or name in guesses or rows is not None
                found[name] = shape if is_better else inferred.shape(name)
        if found == guesses:
            if not is_optimistic:
                return inferred
            is_optimistic = False
        guesses = found
    return infer(graph, dict(types), values, outputs=list(plan.items), complete=True)


def _rows(node: Node, inferred: Inferred, size: int | None) -> int | None:
    """How many elements are read from an array of a size, where it is as many each time."""
    if node.op not in ("TensorArrayGatherV3", "TensorListGather"):
        return size
    indices = inferred.shape(canonical(node.data_inputs[1]))
    return indices[0] if indices.dims else None


def common_shape(one: Shape, other: Shape) -> Shape:
    """What two shapes have in common: sizes that differ are open."""
    if one.dims is None or other.dims is None or len(one) != len(other):
        return Shape(None)
    return Shape([a if a == b else None for a, b in zip(one, other, strict=True)])
