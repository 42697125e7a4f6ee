"""Rows put together by labels: sums, products and extremes of segments."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.pass_through import filled
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import BOOL, INT64, UINT64

SCATTERED = {"Sum": ("add", 16), "Prod": ("mul", 16), "Max": ("max", 18), "Min": ("min", 18)}
"""ONNX's ways to scatter by kind, and the opset that has them first."""


@converts(
    "SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin", "SegmentMean", "UnsortedSegmentSum",
    "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin",
)  # fmt: skip
def segments(emit: OnnxEmit, node: Node) -> OnnxValue:
    kind = node.op.removeprefix("Unsorted").removeprefix("Segment")
    value, labels = emit.input(0), emit.as_int64(emit.input(1))
    if kind in ("Max", "Min") and value.dtype is UINT64:  # it is computed in int64, where the largest is -1
        raise emit.unsupported("segments of uint64, whose extremes ONNX Runtime does not compute")
    depth = emit.rank(labels)
    rows = value if depth == 1 else emit.reshape(value, [None, *list(value.shape)[depth:]])
    labels = labels if depth == 1 else emit.reshape(labels, [-1])
    if node.op.startswith("Unsorted"):
        count = emit.vector(emit.input(2))
    else:
        last = emit.slice(labels, 0, -1, 2**31 - 1)
        count = emit.op("Add", [last, emit.ints([1])], [1])
    return put_together(emit, kind, rows, labels, count, empty(kind, node, value))


def empty(kind: str, node: Node, value: OnnxValue) -> float | int:
    """What a segment without rows gives: ordered segments give 0, others what changes nothing."""
    if kind in ("Sum", "Mean"):
        return 0
    if kind == "Prod":
        return 1
    if not node.op.startswith("Unsorted"):
        return 0
    kind_of = np.finfo(value.dtype.numpy) if value.dtype.is_floating else np.iinfo(value.dtype.numpy)
    return kind_of.min if kind == "Max" else kind_of.max


def put_together(
    emit: OnnxEmit, kind: str, rows: OnnxValue, labels: OnnxValue, count: OnnxValue, nothing: float | int
) -> OnnxValue:
    """One row for each segment; rows with a negative label are left out."""
    shape = emit.output()[1]
    code, since = SCATTERED.get(kind, ("", 99))
    if emit.opset >= since and kind == "Sum" and rows.dtype.name in ("float", "double", "int32", "int64"):
        sizes = [count] if emit.rank(rows) == 1 else [count, emit.slice(emit.dims(rows), 0, 1, 2**31 - 1)]
        after = emit.op("Add", [sizes[0], emit.ints([1])], [1])  # one more, for those that are left out
        start = filled(
            emit, emit.concat([after, *sizes[1:]]), np.full(1, nothing, rows.dtype.numpy),
            OnnxValue("", rows.dtype, Shape(None) if shape.dims is None else Shape([None, *list(shape)[1:]])),
        )  # fmt: skip
        outside = emit.op("Less", [labels, emit.ints([0])], labels.shape, BOOL)
        places = emit.op("Where", [outside, count, labels], labels.shape, INT64)
        made = emit.op("ScatterND", [start, emit.unsqueeze(places, [1]), rows], start.shape, reduction=code)
        return emit.op("Slice", [made, emit.ints([0]), count, emit.ints([0])], shape)
    rank = emit.rank(rows)
    hits = emit.unsqueeze(emit.matches(emit.count_up(count, [None]), labels), list(range(2, rank + 1)))
    rest = {"Prod": 1, "Sum": 0, "Mean": 0}.get(kind)
    neutral = nothing if rest is None else rest
    if rest is None and nothing == 0:
        kind_of = np.finfo(rows.dtype.numpy) if rows.dtype.is_floating else np.iinfo(rows.dtype.numpy)
        neutral = kind_of.min if kind == "Max" else kind_of.max
    spread = emit.op(
        "Where", [hits, emit.unsqueeze(rows, [0]), emit.like(neutral, rows)], [None] * (rank + 1), rows.dtype
    )
    made = reduce(emit, "ReduceSum" if kind == "Mean" else f"Reduce{kind}", spread, [1], False)
    if kind == "Mean":
        members = reduce(emit, "ReduceSum", emit.cast(hits, rows.dtype), [1], False)
        made = emit.op("Div", [made, emit.op("Max", [members, emit.like(1, members)])], shape)
    elif neutral != nothing:
        any_row = reduce(emit, "ReduceMax", emit.cast(hits, INT64), [1], False)
        has = emit.op("Greater", [any_row, emit.ints([0])], None, BOOL)
        made = emit.op("Where", [has, made, emit.like(nothing, made)], shape, rows.dtype)
    made.shape = shape
    return made
