"""Gradients of sums, means, products and extremes along axes and by segment, and of running sums and products."""

from __future__ import annotations

import numpy as np

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import INT32

not_differentiable("All", "Any")


def kept_shape(op: NodeGradient) -> str:
    """The shape of the input with 1 where it was reduced: what the result is reshaped to before it broadcasts."""
    static, axes = op.static(op.inputs[0]), op.value(1)
    if static.rank is not None and axes is not None:
        reduced = {int(axis) % max(static.rank, 1) for axis in np.ravel(axes)}
        dims = [1 if axis in reduced else size for axis, size in enumerate(static)]
        if dims.count(None) == 0 or (dims.count(None) == 1 and 0 not in dims):
            return op.const(np.asarray([-1 if size is None else size for size in dims], np.int32))
    shape = op.shape_of_input(0)
    rank = op.add("Size", shape)
    listed = op.add("Reshape", op.cast(op.inputs[1], INT32), op.const([-1]))
    positive = op.add("FloorMod", op.add("Add", listed, rank), rank)
    ones = op.add("Fill", op.add("Shape", positive), op.const(1))
    every = op.add("Range", op.const(0), rank, op.const(1))
    return op.add("DynamicStitch", [every, positive], [shape, ones])


def spread(op: NodeGradient, ref: str) -> str:
    """A reduced tensor, repeated along the axes that were reduced."""
    if not op.attr("keep_dims"):
        ref = op.add("Reshape", ref, kept_shape(op))
    return op.add("BroadcastTo", ref, op.shape_of_input(0))


gradient("Sum")(lambda op: spread(op, op.grad))


@gradient("Mean")
def mean(op: NodeGradient) -> str:
    before, after = op.static(op.inputs[0]).elements, op.static(op.output()).elements
    if before is not None and after is not None:
        count = op.number(before // max(after, 1))
    else:
        sizes = op.add("Size", op.inputs[0]), op.add("Maximum", op.add("Size", op.output()), op.const(1))
        count = op.cast(op.add("FloorDiv", *sizes), op.dtype)
    return op.add("RealDiv", spread(op, op.grad), count)


@gradient("Max", "Min")
def extreme(op: NodeGradient) -> str:
    """Elements that share the extreme share its gradient."""
    keeps = bool(op.attr("keep_dims"))
    shape = kept_shape(op)
    y, grad = (ref if keeps else op.add("Reshape", ref, shape) for ref in (op.output(), op.grad))
    found = op.cast(op.add("Equal", op.inputs[0], y), op.dtype)
    count = op.add("Sum", found, op.inputs[1], keep_dims=True)
    return op.mul(op.add("RealDiv", found, count), grad)


@gradient("Prod")
def product(op: NodeGradient) -> str:
    """By each element, the product of those before it and of those behind it, so that zeros do no harm."""
    rank = op.rank(op.inputs[0])
    reduced = sorted({int(axis) % max(rank, 1) for axis in np.ravel(op.needs_value(1, "its axes"))})
    if not rank or not reduced:
        return op.grad
    order = [*reduced, *(axis for axis in range(rank) if axis not in reduced)]
    front = op.add("Transpose", op.inputs[0], op.const(order))
    count = op.add("Prod", op.add("GatherV2", op.shape_of_input(0), op.const(reduced), op.const(0)), op.const([0]))
    rows = op.add("Reshape", front, op.add("Pack", [count, op.const(-1)], axis=0))
    before = op.add("Cumprod", rows, op.const(0), exclusive=True)
    behind = op.add("Cumprod", rows, op.const(0), exclusive=True, reverse=True)
    others = op.add("Reshape", op.conj(op.mul(before, behind)), op.add("Shape", front))
    back = op.add("Transpose", others, op.const(np.argsort(order)))
    return op.mul(back, spread(op, op.grad))


@gradient("NthElement")
def nth_element(op: NodeGradient) -> str:
    """Elements that share the value share its gradient."""
    found = op.cast(op.add("Equal", op.add("ExpandDims", op.output(), op.const(-1)), op.inputs[0]), op.dtype)
    count = op.add("Sum", found, op.const([-1]), keep_dims=True)
    return op.mul(op.add("RealDiv", found, count), op.add("ExpandDims", op.grad, op.const(-1)))


@gradient("EuclideanNorm")
def norm(op: NodeGradient) -> str:
    direction = op.add("DivNoNan", op.inputs[0], spread(op, op.output()))
    return op.mul(direction, spread(op, op.grad))


gradient("L2Loss")(lambda op: op.mul(op.inputs[0], op.grad))


@gradient("Cumsum")
def running_sum(op: NodeGradient) -> str:
    return op.add(
        "Cumsum", op.grad, op.inputs[1], exclusive=op.attr("exclusive"), reverse=not op.attr("reverse")
    )  # fmt: skip


@gradient("Cumprod")
def running_product(op: NodeGradient) -> str:
    """By an element that is 0, 0: what TensorFlow 2 says, where 1.15 has NaN."""
    weighted = op.add(
        "Cumsum", op.mul(op.output(), op.grad), op.inputs[1], exclusive=op.attr("exclusive"),
        reverse=not op.attr("reverse"),
    )  # fmt: skip
    return op.add("DivNoNan", weighted, op.inputs[0])


@gradient("CumulativeLogsumexp")
def running_log_of_sum_of_exponentials(op: NodeGradient) -> str:
    """By x, the running sum backwards of g exp(x - y): in logarithms, so that nothing overflows, one for each sign."""
    x, axis = op.inputs
    least = op.const(np.finfo(op.dtype.numpy).min, op.dtype)
    none = op.add("Fill", op.add("Shape", op.grad), least)
    sides = []
    for positive in (op.grad, op.add("Neg", op.grad)):
        log = op.add("Select", op.add("Greater", positive, op.zeros(positive)), op.add("Log", positive), none)
        summed = op.add(
            "CumulativeLogsumexp", op.add("Sub", log, op.output()), axis, exclusive=op.attr("exclusive"),
            reverse=not op.attr("reverse"),
        )  # fmt: skip
        sides.append(op.add("Exp", op.add("Add", summed, x)))
    return op.add("Sub", *sides)


def rows(op: NodeGradient, index: int) -> str:
    """The first size of an input, a scalar."""
    return op.add(
        "StridedSlice", op.shape_of_input(index), op.const([0]), op.const([1]), op.const([1]), shrink_axis_mask=1
    )


gradient("SegmentSum")(lambda op: op.add("GatherV2", op.grad, op.inputs[1], op.const(0)))


@gradient("SegmentMean")
def segment_mean(op: NodeGradient) -> str:
    ids = op.inputs[1]
    rest = op.add("Fill", op.add("ExpandDims", op.const(op.rank(op.inputs[0]) - 1), op.const(0)), op.const(1))
    shape = op.add("ConcatV2", [op.add("Shape", ids), rest], op.const(0))
    ones = op.add("Fill", shape, op.number(1))
    counts = op.add("SegmentSum", ones, ids)
    return op.add("GatherV2", op.add("DivNoNan", op.grad, counts), ids, op.const(0))


@gradient("UnsortedSegmentSum")
def unsorted_segment_sum(op: NodeGradient) -> str:
    """Rows with a negative id were dropped, so that nothing comes back to them."""
    ids = op.inputs[1]
    zero = op.builder.const(0, op.builder.dtype(ids).base)
    gathered = op.add("GatherV2", op.grad, op.add("Maximum", ids, zero), op.const(0))
    return op.add("SelectV2", _is_used(op, zero), gathered, op.number(0))


def _is_used(op: NodeGradient, zero: str) -> str:
    """Whether the id of each row is not negative, in a shape that broadcasts over the rows."""
    ids = op.inputs[1]
    is_used = op.add("GreaterEqual", ids, zero)
    for _ in range(op.rank(op.inputs[0]) - op.rank(ids)):
        is_used = op.add("ExpandDims", is_used, op.const(-1))
    return is_used


@gradient("SegmentProd", "UnsortedSegmentProd")
def segment_product(op: NodeGradient) -> str:
    """The product of a segment's other rows: also beside a single 0, and none where several are 0."""
    values, ids, *count = op.inputs
    zero = op.builder.const(0, op.builder.dtype(ids).base)
    places = op.add("Maximum", ids, zero) if count else ids
    is_zero = op.add("Equal", values, op.number(0))
    zeros = op.add(op.node.op.replace("Prod", "Sum"), op.cast(is_zero, INT32), ids, *count)
    grad = op.add("SelectV2", op.add("Greater", zeros, op.const(1)), op.number(0), op.grad)
    nonzero = op.add("SelectV2", is_zero, op.number(1), values)
    others = op.add(op.node.op, nonzero, ids, *count)
    grad, others, product = (op.add("GatherV2", ref, places, op.const(0)) for ref in (grad, others, op.output()))
    found = op.mul(grad, op.add("SelectV2", is_zero, others, op.add("RealDiv", product, nonzero)))
    return op.add("SelectV2", _is_used(op, zero), found, op.number(0)) if count else found


@gradient("SegmentMax", "SegmentMin")
def segment_extreme(op: NodeGradient) -> str:
    """Rows that share the extreme share its gradient."""
    ids = op.inputs[1]
    found = op.cast(op.add("Equal", op.inputs[0], op.add("GatherV2", op.output(), ids, op.const(0))), op.dtype)
    weighted = op.add("RealDiv", op.grad, op.add("SegmentSum", found, ids))
    chosen = op.add("Greater", found, op.number(0))
    return op.add("Select", chosen, op.add("GatherV2", weighted, ids, op.const(0)), op.zeros(found))


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_segment_extreme(op: NodeGradient) -> str:
    """Rows that share the extreme share its gradient; those with a negative id get none."""
    rows_, ids, count = op.inputs
    zero = op.builder.const(0, op.builder.dtype(ids).base)
    places = op.add("Maximum", ids, zero)
    equal = op.add("Equal", rows_, op.add("GatherV2", op.output(), places, op.const(0)))
    found = op.add("LogicalAnd", equal, _is_used(op, zero))
    shares = op.add("UnsortedSegmentSum", op.cast(found, op.dtype), ids, count)
    weighted = op.add("DivNoNan", op.grad, shares)
    return op.add("SelectV2", found, op.add("GatherV2", weighted, places, op.const(0)), op.number(0))


@gradient("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def sparse_segment_sum(op: NodeGradient) -> str:
    gathered = op.add("GatherV2", op.grad, op.inputs[2], op.const(0))
    return op.add("UnsortedSegmentSum", gathered, op.inputs[1], rows(op, 0))


@gradient(
    "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments"
)
def sparse_segment_mean(op: NodeGradient) -> str:
    return op.add(f"{op.node.op.removesuffix('WithNumSegments')}Grad", op.grad, op.inputs[1], op.inputs[2], rows(op, 0))
