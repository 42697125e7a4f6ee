"""Gradients of lookups by index: each element goes back to where it came from, those from one place are summed.

TensorFlow gives gradients of lookups as pairs of rows and indices; here they are whole tensors.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.differentiation.backward import Backward
from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.errors import GraphError
from pocketgraph.graph.dtype import INT32


@gradient("Gather")
def gather(op: Backward) -> str:
    return summed_rows(op, op.grad, op.inputs[1], op.shape_of_input(0))


def summed_rows(op: Backward, rows: str, indices: str, shape: str) -> str:
    """Rows, summed by their indices, in a tensor of this shape."""
    count = op.add("StridedSlice", shape, op.const([0]), op.const([1]), op.const([1]), shrink_axis_mask=1)
    total = op.add("UnsortedSegmentSum", rows, indices, count)
    return op.add("Reshape", total, shape)


@gradient("GatherV2")
def gather_along_axis(op: Backward) -> str:
    if "batch_dims" in op.node.attrs and op.attr("batch_dims"):
        raise GraphError("GatherV2 with batch_dims has no gradient here", hint="write it with GatherNd")
    axis = int(op.needs_value(2, "its axis"))
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


@gradient("GatherNd")
def gather_points(op: Backward) -> str:
    return op.add("ScatterNd", op.inputs[1], op.grad, op.cast(op.shape_of_input(0), op.builder.dtype(op.inputs[1])))


@gradient("ScatterNd")
def scatter_points(op: Backward) -> list[str | None]:
    return [None, op.add("GatherNd", op.grad, op.inputs[0])]


@gradient("TensorScatterAdd", "TensorScatterUpdate", "TensorScatterSub")
def scatter_into(op: Backward) -> list[str | None]:
    _, indices, updates = op.inputs
    into = op.grad
    moved = op.add("GatherNd", op.grad, indices)
    if op.node.op == "TensorScatterUpdate":
        into = op.add("TensorScatterUpdate", op.grad, indices, op.zeros(updates))
    if op.node.op == "TensorScatterSub":
        moved = op.add("Neg", moved)
    return [into, None, moved]


@gradient("DynamicStitch", "ParallelDynamicStitch")
def stitch(op: Backward) -> list[str | None]:
    """A row that a later one took the place of gets its gradient too, as in TensorFlow."""
    half = len(op.inputs) // 2
    gathered = [op.add("GatherV2", op.grad, indices, op.const(0)) for indices in op.inputs[:half]]
    return [*(None for _ in gathered), *gathered]


@gradient("DynamicPartition")
def partition(op: Backward) -> str:
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
def largest(op: Backward) -> str:
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
