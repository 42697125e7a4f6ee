"""Shape rules of elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import axis_of, dims_of, merge
from pocketgraph.kernels.shapes.common_rules import held_by, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule
from pocketgraph.kernels.xla_dimensions import GatherAxes

shape_rule(
    "TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax",
    "ScatterNdNonAliasingAdd", "InplaceUpdate", "InplaceAdd", "InplaceSub",
)(unchanged)  # fmt: skip
shape_rule("ScatterNd")(held_by(2))


@shape_rule("OneHot")
def one_hot(call: ShapeCall) -> Shape:
    dims, depth = call.dims(0), call.integer(1)
    at = axis_of(call.attr("axis", -1), len(dims) + 1)
    return Shape((*dims[:at], depth, *dims[at:]))


@shape_rule("Gather")
def gather(call: ShapeCall) -> Shape:
    params, indices = call.shape(0), call.shape(1)
    if call.node.op == "ResourceGather":
        params = call.handle(0)
    return gathered(params, indices, 0)


@shape_rule("GatherV2")
def gather_v2(call: ShapeCall) -> Shape:
    batch = call.attr("batch_dims", 0)
    params, indices, axis = call.shape(0), call.shape(1), call.integer(2)
    if axis is None:
        if params.rank is None or indices.rank is None:
            return UNKNOWN
        return Shape((None,) * (params.rank + indices.rank - 1 - batch))
    return gathered(params, indices, axis, batch)


def gathered(params: Shape, indices: Shape, axis: int, batch: int = 0) -> Shape:
    """The shape of ``params`` with one axis replaced by the indices' shape (less their batch dimensions)."""
    old, new = dims_of(params), dims_of(indices)
    at = axis_of(axis, len(old))
    first = batch + len(new) if batch < 0 else batch
    return Shape((*old[:at], *new[first:], *old[at + 1 :]))


@shape_rule("GatherNd")
def gather_nd(call: ShapeCall) -> Shape:
    *places, depth = call.dims(1, 1)
    params = call.dims(0)
    if depth is None:
        return UNKNOWN
    if depth > len(params):
        raise GraphError(f"indices of {depth} numbers cannot select from shape {call.shape(0)}")
    return Shape((*places, *params[depth:]))


shape_rule("Where")(lambda call: Shape((None, call.shape(0).rank)))


@shape_rule("DynamicPartition")
def dynamic_partition(call: ShapeCall) -> Sequence[Shape]:
    data, rank, count = call.dims(0), len(call.dims(1)), call.count("num_partitions")
    merge(Shape(data[:rank]), call.shape(1))
    return [Shape((None, *data[rank:]))] * count


@shape_rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(call: ShapeCall) -> Shape:
    count = len(call.inputs) // 2
    rest, largest = UNKNOWN, -1
    all_known = True
    for i in range(count):
        indices, data, values = call.shape(i), call.shape(count + i), call.integers(i)
        if data.dims is not None and indices.dims is not None:
            rest = merge(rest, Shape(data.dims[len(indices.dims) :]))
        if values is None:
            all_known = False
        else:
            largest = max([largest, *values])
    return Shape((largest + 1 if all_known else None, *dims_of(rest)))


@shape_rule("XlaGather")
def xla_gather(call: ShapeCall) -> Shape:
    """Sizes of windows at the axes that the message calls offsets, and those of the starts around them."""
    rank, starts = len(call.dims(0)), call.dims(1)
    sizes: Sequence[int | None] = call.integers(2) or [None] * rank
    axes = GatherAxes.of(call.attr("dimension_numbers", "").encode("latin-1"))
    try:
        axes.check(rank, len(starts))
    except ValueError as error:
        raise GraphError(str(error)) from None
    around = iter([size for axis, size in enumerate(starts) if axis != axes.vector])
    windows = dict(zip(axes.offset, (sizes[axis] for axis in axes.window_axes(rank)), strict=True))
    found = len(starts) - (axes.vector < len(starts)) + len(windows)
    return Shape(windows[axis] if axis in windows else next(around) for axis in range(found))
