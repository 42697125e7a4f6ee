"""Shape rules of elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import at_least, axis_of, merge
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
    indices, depth, axis = call.shape(0), call.integer(1), call.attr("axis", -1)
    if indices.dims is None:
        return UNKNOWN
    at = axis_of(axis, len(indices.dims) + 1)
    return Shape((*indices.dims[:at], depth, *indices.dims[at:]))


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
    if params.dims is None or indices.dims is None:
        return UNKNOWN
    at = axis_of(axis, len(params.dims))
    first = batch + len(indices.dims) if batch < 0 else batch
    return Shape((*params.dims[:at], *indices.dims[first:], *params.dims[at + 1 :]))


@shape_rule("GatherNd")
def gather_nd(call: ShapeCall) -> Shape:
    params, indices = call.shape(0), at_least(call.shape(1), 1)
    if params.dims is None or indices.dims is None or indices.dims[-1] is None:
        return UNKNOWN
    depth = indices.dims[-1]
    if depth > len(params.dims):
        raise GraphError(f"indices of {depth} numbers cannot select from shape {params}")
    return Shape((*indices.dims[:-1], *params.dims[depth:]))


shape_rule("Where")(lambda call: Shape((None, call.shape(0).rank)))


@shape_rule("DynamicPartition")
def dynamic_partition(call: ShapeCall) -> Sequence[Shape]:
    data, partitions, count = call.shape(0), call.shape(1), call.count("num_partitions")
    if data.dims is None or partitions.dims is None:
        return [UNKNOWN] * count
    merge(Shape(data.dims[: len(partitions.dims)]), partitions)
    return [Shape((None, *data.dims[len(partitions.dims) :]))] * count


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
    if rest.dims is None:
        return UNKNOWN
    return Shape((largest + 1 if all_known else None, *rest.dims))


@shape_rule("XlaGather")
def xla_gather(call: ShapeCall) -> Shape:
    """Sizes of windows at the axes that the message calls offsets, and those of the starts around them."""
    operand, starts = call.shape(0), call.shape(1)
    rank = operand.rank
    if starts.dims is None or rank is None:
        return UNKNOWN
    sizes: Sequence[int | None] = call.integers(2) or [None] * rank
    axes = GatherAxes.of(call.attr("dimension_numbers", "").encode("latin-1"))
    try:
        axes.check(rank, len(starts.dims))
    except ValueError as error:
        raise GraphError(str(error)) from None
    around = iter([size for axis, size in enumerate(starts.dims) if axis != axes.vector])
    windows = dict(zip(axes.offset, (sizes[axis] for axis in axes.window_axes(rank)), strict=True))
    found = len(starts.dims) - (axes.vector < len(starts.dims)) + len(windows)
    return Shape(windows[axis] if axis in windows else next(around) for axis in range(found))
