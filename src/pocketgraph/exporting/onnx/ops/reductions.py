"""Sums, means, extremes and the like along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import elementwise, mul
from pocketgraph.exporting.onnx.channel_order import first_axis, to_first
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.layout import is_first
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL, INT32, INT64
from pocketgraph.graph.shape import UNKNOWN

REDUCED = {
    "Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd",
    "All": "ReduceMin", "Any": "ReduceMax", "EuclideanNorm": "ReduceL2",
}  # fmt: skip
FROM_18 = 18
"""The opset in which the axes of all reductions became an input, as those of ReduceSum in 13."""


@converts(*REDUCED)
def reduced(emit: OnnxEmit, node: Node) -> OnnxValue:
    value, code = emit.input(0), REDUCED[node.op]
    keep = bool(node.attr("keep_dims", False))
    axes = emit.static_or_none(1)
    if value.dtype is BOOL:
        value = emit.cast(value, INT32)
    if axes is None:
        found = by_computed_axes(emit, code, value, emit.input(1), keep)
    elif value.rank is None:
        if np.asarray(axes).size == 0:
            found = value
        else:
            found = reduce(emit, code, value, np.asarray(axes).reshape(-1).tolist(), keep)
    else:
        found = reduce(emit, code, value, emit.axes(1, value.rank), keep)
    if node.op == "Any":  # of no elements, the largest is the least there is
        return elementwise(emit, "Greater", [found, emit.like(0, found)], BOOL)
    return emit.cast(found, BOOL) if node.op == "All" else found


def reduce(emit: OnnxEmit, code: str, value: OnnxValue, axes: Sequence[int], keep: bool) -> OnnxValue:
    """A reduction over these axes; over none it is the value itself (its magnitude for a norm)."""
    axes = sorted(set(axes))
    if not axes:
        return emit.op("Abs", [value], value.shape) if code == "ReduceL2" else value
    shape = reduced_shape(value.shape, axes, keep)
    if not is_first(value) or value.first is None:
        return _reduce(emit, code, value, axes, keep, shape)
    rank = emit.rank(value)
    within = sorted(first_axis(axis, rank) for axis in axes)
    left = [axis for place, axis in enumerate(to_first(rank)) if place not in within]
    if keep:
        return emit.from_first(_reduce(emit, code, value.first, within, True, None), shape)
    if left == sorted(left):
        return _reduce(emit, code, value.first, within, False, shape)
    if len(left) >= 3 and 0 in left and rank - 1 in left:
        return emit.from_first(_reduce(emit, code, value.first, within, False, None), shape)
    return _reduce(emit, code, value, axes, keep, shape)


def _reduce(
    emit: OnnxEmit, code: str, value: OnnxValue, axes: Sequence[int], keep: bool, shape: Shape | None
) -> OnnxValue:
    if shape is None:
        shape = reduced_shape(value.shape, axes, keep)
    if code == "ReduceSum" or emit.opset >= FROM_18:
        return emit.op(code, [value, emit.ints(axes)], shape, keepdims=int(keep))
    return emit.op(code, [value], shape, axes=list(axes), keepdims=int(keep))


def by_computed_axes(emit: OnnxEmit, code: str, value: OnnxValue, axes: OnnxValue, keep: bool) -> OnnxValue:
    """A reduction whose axes only the run tells."""
    shape = value.shape if keep and value.rank is None else UNKNOWN
    if code != "ReduceSum":
        emit.since(FROM_18, "its axes are computed, which ONNX takes")
    attrs: dict[str, Any] = {"keepdims": int(keep), "noop_with_empty_axes": 1}
    return emit.op(code, [value, emit.vector(axes)], shape, **attrs)


def reduced_shape(shape: Shape, axes: Sequence[int], keep: bool) -> Shape:
    """What is left of a shape."""
    if shape.dims is None:
        return UNKNOWN
    if keep:
        return Shape([1 if axis in axes else size for axis, size in enumerate(shape)])
    return Shape([size for axis, size in enumerate(shape) if axis not in axes])


@converts("ArgMax", "ArgMin")
def place_of_extreme(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    axis = emit.axes(1, emit.rank(value), "the dimension")[0] if emit.count > 1 else 0
    shape = reduced_shape(value.shape, [axis], False)
    if is_first(value) and value.first is not None and axis == emit.rank(value) - 1:
        found = emit.op(node.op, [value.first], shape, INT64, axis=1, keepdims=0)
    else:
        found = emit.op(node.op, [value], shape, INT64, axis=axis, keepdims=0)
    return emit.cast(found, node.dtype("output_type", INT64))


@converts("L2Loss")
def half_squares(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    squares = emit.op("ReduceSumSquare", [value], [], keepdims=0)
    return mul(emit, squares, emit.like(0.5, value))


@converts("Cumsum")
def running_sum(emit: OnnxEmit, node: Node) -> OnnxValue:
    flags: dict[str, Any] = {name: int(bool(node.attr(name, False))) for name in ("exclusive", "reverse")}
    value = emit.input(0)
    return emit.op("CumSum", [value, emit.input(1)], value.shape, **flags)


@converts("Cumprod")
def running_product(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    """ONNX has no running product: a lower triangle of copies is multiplied."""
    rank = emit.rank(value)
    axis = emit.axes(1, rank)[0]
    length = emit.known_size(value, axis, "the length of its axis")
    exclusive, backward = bool(node.attr("exclusive", False)), bool(node.attr("reverse", False))
    mask = np.tri(length, length, -1 if exclusive else 0, dtype=bool)
    if backward:
        mask = mask[::-1, ::-1]
    rows = emit.unsqueeze(value, [axis])
    shape = [length, length] + [1] * (rank - 1 - axis)
    kept = emit.const(mask.reshape(shape))
    spread = emit.op("Where", [kept, rows, emit.like(1, value)], None, value.dtype)
    return reduce(emit, "ReduceProd", spread, [axis + 1], False)
