"""Shape rules of joining, splitting, repeating and turning round along axes."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import (
    axis_of,
    dims_of,
    exact_quotient,
    merge,
    merge_dim,
    of_rank,
    product,
    replaced,
    total,
)
from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("Reverse", "ReverseSequence", "ReverseV2", "Roll")(unchanged)


@shape_rule("Pack")
def pack(call: ShapeCall) -> Shape:
    element = UNKNOWN
    for shape in call.inputs:
        element = merge(element, shape)
    dims = dims_of(element)
    axis = axis_of(call.attr("axis", 0), len(dims) + 1)
    return Shape((*dims[:axis], len(call.inputs), *dims[axis:]))


shape_rule("ParallelConcat")(lambda call: call.declared())


@shape_rule("Unpack")
def unpack(call: ShapeCall) -> Sequence[Shape]:
    dims, count = call.dims(0), call.count("num")
    axis = axis_of(call.attr("axis", 0), len(dims))
    merge_dim(dims[axis], count)
    return [Shape(dims[:axis] + dims[axis + 1 :])] * count


shape_rule("ConcatV2")(lambda call: joined(call.inputs[:-1], call.integer(len(call.inputs) - 1)))
shape_rule("Concat")(lambda call: joined(call.inputs[1:], call.integer(0)))


def joined(parts: Sequence[Shape], axis: int | None) -> Shape:
    """The shape of these parts concatenated along an axis (None: not known which)."""
    ranks = [part.rank for part in parts if part.rank is not None]
    if not ranks:
        return UNKNOWN
    rank = ranks[0]
    if axis is None:
        for part in parts:
            of_rank(part, rank)
        return Shape((None,) * rank)
    at = axis_of(axis, rank)
    rest = UNKNOWN
    for part in parts:
        rest = merge(rest, replaced(of_rank(part, rank), {at: None}))
    return replaced(of_rank(rest, rank), {at: total(*(of_rank(part, rank)[at] for part in parts))})


@shape_rule("Split")
def split(call: ShapeCall) -> Sequence[Shape]:
    dims, axis, count = call.dims(1), call.integer(0), call.count("num_split")
    if axis is None:
        return [Shape((None,) * len(dims))] * count
    at = axis_of(axis, len(dims))
    return [replaced(dims, {at: exact_quotient(dims[at], count)})] * count


@shape_rule("SplitV")
def split_v(call: ShapeCall) -> Sequence[Shape]:
    dims, sizes, axis, count = call.dims(0), call.integers(1), call.integer(2), call.count("num_split")
    if count == 1:
        return [Shape(dims)]
    if axis is None:
        return [Shape((None,) * len(dims))] * count
    at = axis_of(axis, len(dims))
    left = dims[at]
    if sizes is None or len(sizes) != count:
        return [replaced(dims, {at: None})] * count
    if sizes.count(-1) == 1:
        rest = sum(s for s in sizes if s >= 0)
        sizes = [s if s >= 0 else (-1 if left is None else left - rest) for s in sizes]
    elif left is not None and sum(sizes) != left:
        raise GraphError(f"parts of {sizes} do not make up {left}")
    return [replaced(dims, {at: size if size >= 0 else None}) for size in sizes]


@shape_rule("Tile")
def tile(call: ShapeCall) -> Shape:
    shape, times = call.shape(0), call.as_shape(1)
    if shape.dims is None or times.dims is None:
        return Shape((None,) * len(shape.dims)) if shape.dims is not None else Shape(times.dims and [None] * len(times))
    counts = of_rank(times, len(shape.dims))
    return Shape(product(d, n) for d, n in zip(shape.dims, counts, strict=True))


@shape_rule("TileGrad")
def of_copies(call: ShapeCall) -> Shape:
    whole, times = call.shape(0), call.integers(1)
    if whole.dims is None or times is None or len(times) != len(whole.dims) or 0 in times:
        return whole if whole.dims is None else Shape((None,) * len(whole.dims))
    return Shape(None if s is None else s // t for s, t in zip(whole.dims, times, strict=True))
