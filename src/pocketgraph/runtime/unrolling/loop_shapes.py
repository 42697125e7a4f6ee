"""The shapes of tensors in loops that stay loops."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pocketgraph.graph import DType, Graph, Shape, node_name
from pocketgraph.graph.op_traits import ENTER
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.runtime.engines.compilation_units import Plan
from pocketgraph.runtime.engines.frames import is_loop_head
from pocketgraph.runtime.unrolling.array_origins import reads, written

MOST_GUESSES = 12  # each guess is more general than the one before it


def with_loop_shapes(
    graph: Graph,
    plan: Plan,
    types: Mapping[str, tuple[DType, Shape]],
    inferred: Inferred,
) -> Inferred:
    """What is known of a graph's tensors when loops' variables are taken to keep the shapes that they begin with, as
    far as that is so; and elements of arrays of tensors to have the shapes of what is written.

    Args:
        graph: the graph.
        plan: its needed nodes.
        types: type and shape of each tensor that is fed, by name.
        inferred: what is known so far.
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
    is_optimistic = True  # at first a variable has the shape that it begins with, whatever comes round
    for _ in range(MOST_GUESSES):
        given = dict(types)
        for name, shape in guesses.items():
            dtype = inferred.dtype(f"{name}:0")
            if dtype is not None:
                given[f"{name}:0"] = (dtype, shape)
        inferred = infer(graph, given, outputs=list(plan.items), complete=True)
        found = {name: inferred.shape(source) for name, source in enters.items()}
        for name, sources in heads.items():
            first, again = sorted(sources, key=lambda ref: node_name(ref) not in enters)
            begins = found.get(node_name(first)) or inferred.shape(first)
            found[name] = begins if is_optimistic else common_shape(begins, inferred.shape(again))
        for name, array, more in array_reads:
            elements = [Shape(s.dims[less:]) for ref, less in writes.get(array, ())
                        for s in [inferred.shape(ref)] if s.dims is not None]  # fmt: skip
            if elements and name in plan.items:
                shape = Shape([*[None] * more, *reduce(common_shape, elements)])
                found[name] = shape if inferred.shape(name).dims is None or name in guesses else inferred.shape(name)
        if found == guesses:
            if not is_optimistic:
                return inferred
            is_optimistic = False
        guesses = found
    return infer(graph, dict(types), outputs=list(plan.items), complete=True)


def common_shape(one: Shape, other: Shape) -> Shape:
    """What two shapes have in common: sizes that differ are open."""
    if one.dims is None or other.dims is None or len(one) != len(other):
        return Shape(None)
    return Shape([a if a == b else None for a, b in zip(one, other, strict=True)])
