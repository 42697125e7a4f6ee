"""Gradients of lookups by index: each element goes back to where it came from, those from one place are summed.

TensorFlow gives gradients of lookups as pairs of rows and indices; here they are whole tensors.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import INT32

gradient("Gather")(lambda op: summed_rows(op, op.grad, op.inputs[1], op.shape_of_input(0)))


def summed_rows(op: NodeGradient, rows: str, indices: str, shape: str) -> str:
    """Rows, summed by their indices, in a tensor of this shape."""
    count = op.add("StridedSlice", shape, op.const([0]), op.const([1]), op.const([1]), shrink_axis_mask=1)
    total = op.add("UnsortedSegmentSum", rows, indices, count)
    return op.add("Reshape", total, shape)


@gradient("GatherV2")
def gather_along_axis(op: NodeGradient) -> str:
    axis = int(op.needs_value(2, "its axis"))
    if op.attr("batch_dims"):
        return _gather_in_batches(op, axis)
    shape = op.shape_of_input(0)
    if axis == 0:
        return summed_rows(op, op.grad, op.inputs[1], shape)
    rank, looked_up = op.rank(op.inputs[0]), op.rank(op.inputs[1])
    axis %= rank
    indexed = list(range(axis, axis + looked_up))
    others = [*range(axis), *range(axis + looked_up, rank - 1 + looked_up)]
    rows = op.add("Transpose", op.grad, op.const([*indexed, *others]))
    order = [axis, *(other for other in range(rank) if other != axis)]
    total = summed_rows(op, rows, op.inputs[1], op.add("GatherV2", shape, op.const(order), op.const(0)))
    return op.add("Transpose", total, op.const(np.argsort(order)))


def _gather_in_batches(op: NodeGradient, axis: int) -> str:
    """The rows of a batch are looked up in one table of all batches, each batch behind the one before it."""
    params, indices = op.inputs[:2]
    rank, looked_up = op.rank(params), op.rank(indices)
    axis %= rank
    batches = int(op.attr("batch_dims"))
    batches += looked_up if batches < 0 else 0
    shape, many = op.shape(params), looked_up - batches
    ahead, indexed = list(range(batches)), list(range(axis, axis + many))
    others = [*range(batches, axis), *range(axis + many, rank - 1 + many)]
    rows = op.add("Transpose", op.grad, op.const([*ahead, *indexed, *others]))
    order = [*ahead, axis, *(other for other in range(batches, rank) if other != axis)]
    sizes = op.add("GatherV2", shape, op.const(order), op.const(0))
    outer, count, inner = (
        op.add("StridedSlice", sizes, op.const([begin]), op.const([end]), op.const([1]))
        for begin, end in ((0, batches), (batches, batches + 1), (batches + 1, rank))
    )
    total = op.add("Prod", outer, op.const([0]), keep_dims=True)
    by_batch = op.add("Reshape", indices, op.add("ConcatV2", [total, op.const([-1])], op.const(0)))
    scalar = op.const(np.zeros(0, np.int32))
    batch = op.add("Range", op.const(0), op.add("Reshape", total, scalar), op.const(1))
    starts = op.cast(op.add("ExpandDims", op.mul(batch, count), op.const(1)), op.builder.dtype(indices))
    places = op.add("Reshape", op.add("Add", by_batch, starts), op.const([-1]))
    count_of_all = op.add("Reshape", op.mul(total, count), scalar)
    lines = op.add("ConcatV2", [op.add("Shape", places), inner], op.const(0))
    added = op.add("UnsortedSegmentSum", op.add("Reshape", rows, lines), places, count_of_all)
    return op.add("Transpose", op.add("Reshape", added, sizes), op.const(np.argsort(order)))


@gradient("GatherNd")
def gather_points(op: NodeGradient) -> str:
    return op.add("ScatterNd", op.inputs[1], op.grad, op.cast(op.shape_of_input(0), op.builder.dtype(op.inputs[1])))


gradient("ScatterNd")(lambda op: [None, op.add("GatherNd", op.grad, op.inputs[0])])


@gradient("TensorScatterAdd", "TensorScatterUpdate", "TensorScatterSub")
def scatter_into(op: NodeGradient) -> list[str | None]:
    _, indices, updates = op.inputs
    into = op.grad
    moved = op.add("GatherNd", op.grad, indices)
    if op.node.op == "TensorScatterUpdate":
        into = op.add("TensorScatterUpdate", op.grad, indices, op.zeros(updates))
    if op.node.op == "TensorScatterSub":
        moved = op.add("Neg", moved)
    return [into, None, moved]


@gradient("TensorScatterMax", "TensorScatterMin")
def extreme_into(op: NodeGradient) -> list[str | None]:
    """All that share the extreme share its gradient."""
    x, indices, updates = op.inputs
    chosen = op.add("Equal", updates, op.add("GatherNd", op.output(), indices))
    kept, taken = (op.cast(ref, op.dtype) for ref in (op.add("Equal", x, op.output()), chosen))
    share = op.add("RealDiv", op.grad, op.add("TensorScatterAdd", kept, indices, taken))
    return [op.mul(share, kept), None, op.mul(op.add("GatherNd", share, indices), taken)]


gradient("ScatterNdNonAliasingAdd")(lambda op: [op.grad, None, op.add("GatherNd", op.grad, op.inputs[1])])


@gradient("SparseToDense")
def scattered(op: NodeGradient) -> list[str | None]:
    """The default's gradient is the sum of what no value took the place of."""
    places = op.add("Reshape", op.inputs[0], op.const([-1, op.rank(op.output())]))
    taken = op.add("GatherNd", op.grad, places)
    total = op.add("Sum", taken, op.const([0]))
    every = op.add("Range", op.const(0), op.add("Rank", op.grad), op.const(1))
    by_default = op.add("Sub", op.add("Sum", op.grad, every), total)
    return [None, None, taken if op.rank(op.inputs[2]) else total, by_default]


@gradient("SparseTensorDenseMatMul")
def sparse_product(op: NodeGradient) -> list[str | None]:
    """Of A B with A's values at places: by each value the product of a row of the gradient and one of B."""
    indices, values, shape, b = op.inputs
    is_turned, right_is_turned = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))
    flip = op.const([1, 0])
    by_right = op.add("SparseTensorDenseMatMul", indices, values, shape, op.grad, adjoint_a=not is_turned)
    left, right = (
        op.add("StridedSlice", indices, op.const([0, at]), op.const([0, at + 1]), op.const([1, 1]), begin_mask=1,
               end_mask=1, shrink_axis_mask=2) for at in ((1, 0) if is_turned else (0, 1))
    )  # fmt: skip
    rows = op.add("GatherV2", op.grad, left, op.const(0))
    by_rows = op.add("GatherV2", op.add("Transpose", b, flip) if right_is_turned else b, right, op.const(0))
    by_values = op.add("Sum", op.mul(rows, by_rows), op.const([1]))
    return [None, by_values, None, op.add("Transpose", by_right, flip) if right_is_turned else by_right]


@gradient("DynamicStitch", "ParallelDynamicStitch")
def stitch(op: NodeGradient) -> list[str | None]:
    """A row that a later one took the place of gets its gradient too, as in TensorFlow."""
    half = len(op.inputs) // 2
    gathered = [op.add("GatherV2", op.grad, indices, op.const(0)) for indices in op.inputs[:half]]
    return [*(None for _ in gathered), *gathered]


@gradient("DynamicPartition")
def partition(op: NodeGradient) -> str:
    data, partitions = op.inputs
    shape = op.shape(partitions)
    count = op.add("Prod", shape, op.const([0]))
    places = op.add("Reshape", op.add("Range", op.const(0), count, op.const(1)), shape)
    number = len(op.grads)
    parts = op.add("DynamicPartition", places, partitions, num_partitions=number)
    indices = [parts if port == 0 else f"{parts}:{port}" for port in range(number)]
    stitched = op.add("DynamicStitch", indices, [op.grad_of(port) for port in range(number)])
    return op.add("Reshape", stitched, op.shape(data))


@gradient("TopK", "TopKV2")
def largest(op: NodeGradient) -> str:
    shape = op.shape_of_input(0)
    last = op.add("StridedSlice", shape, op.const([-1]), op.const([0]), op.const([1]), shrink_axis_mask=1)
    size = op.add("Prod", shape, op.const([0]))
    found = op.output(1)
    width = op.add(
        "StridedSlice", op.add("Shape", found), op.const([-1]), op.const([0]), op.const([1]), shrink_axis_mask=1
    )
    by_row = op.add("Reshape", found, op.add("Pack", [op.const(-1), width], axis=0))
    starts = op.add("ExpandDims", op.add("Range", op.const(0), size, last), op.const(1))
    flat = op.add("Reshape", op.add("Add", op.cast(by_row, INT32), starts), op.const([-1, 1]))
    rows = op.add("Reshape", op.grad, op.const([-1]))
    return op.add("Reshape", op.add("ScatterNd", flat, rows, op.add("Reshape", size, op.const([1]))), shape)
