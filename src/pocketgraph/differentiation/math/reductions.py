"""Gradients of sums, means, products and extremes along axes, and of running sums and products."""

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
    others = op.add("Reshape", op.mul(before, behind), op.add("Shape", front))
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
    weighted = op.add(
        "Cumsum", op.mul(op.output(), op.grad), op.inputs[1], exclusive=op.attr("exclusive"),
        reverse=not op.attr("reverse"),
    )  # fmt: skip
    return op.add("RealDiv", weighted, op.inputs[0])


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
