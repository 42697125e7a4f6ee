"""Gradients of sums and means by segment."""

from __future__ import annotations

from pocketgraph.differentiation.backward import Backward
from pocketgraph.differentiation.registry import gradient


def rows(op: Backward, index: int) -> str:
    """The first size of an input, a scalar."""
    return op.add(
        "StridedSlice", op.shape_of_input(index), op.const([0]), op.const([1]), op.const([1]), shrink_axis_mask=1
    )


@gradient("SegmentSum")
def segment_sum(op: Backward) -> str:
    return op.add("GatherV2", op.grad, op.inputs[1], op.const(0))


@gradient("SegmentMean")
def segment_mean(op: Backward) -> str:
    ids = op.inputs[1]
    rest = op.add("Fill", op.add("ExpandDims", op.const(op.rank(op.inputs[0]) - 1), op.const(0)), op.const(1))
    shape = op.add("ConcatV2", [op.add("Shape", ids), rest], op.const(0))
    ones = op.add("Fill", shape, op.number(1))
    counts = op.add("SegmentSum", ones, ids)
    return op.add("GatherV2", op.add("DivNoNan", op.grad, counts), ids, op.const(0))


@gradient("UnsortedSegmentSum")
def unsorted_segment_sum(op: Backward) -> str:
    """Rows with a negative id were dropped, so that nothing comes back to them."""
    ids = op.inputs[1]
    zero = op.builder.const(0, op.builder.dtype(ids).base)
    gathered = op.add("GatherV2", op.grad, op.add("Maximum", ids, zero), op.const(0))
    is_used = op.cast(op.add("GreaterEqual", ids, zero), op.dtype)
    missing = op.rank(op.inputs[0]) - op.rank(ids)
    for _ in range(missing):
        is_used = op.add("ExpandDims", is_used, op.const(-1))
    return op.mul(gathered, is_used)


@gradient("SparseSegmentSum")
def sparse_segment_sum(op: Backward) -> str:
    gathered = op.add("GatherV2", op.grad, op.inputs[2], op.const(0))
    return op.add("UnsortedSegmentSum", gathered, op.inputs[1], rows(op, 0))


@gradient("SparseSegmentMean", "SparseSegmentSqrtN")
def sparse_segment_mean(op: Backward) -> str:
    return op.add(f"{op.node.op}Grad", op.grad, op.inputs[1], op.inputs[2], rows(op, 0))
