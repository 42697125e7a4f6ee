"""Gradients of sums and means by segment."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import INT32


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


@gradient("SparseSegmentSum")
def sparse_segment_sum(op: NodeGradient) -> str:
    gathered = op.add("GatherV2", op.grad, op.inputs[2], op.const(0))
    return op.add("UnsortedSegmentSum", gathered, op.inputs[1], rows(op, 0))


@gradient("SparseSegmentMean", "SparseSegmentSqrtN")
def sparse_segment_mean(op: NodeGradient) -> str:
    return op.add(f"{op.node.op}Grad", op.grad, op.inputs[1], op.inputs[2], rows(op, 0))
