"""Sums, means and extremes over axes, softmax, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.translation import Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation

KINDS = {
    "ReduceSum": "reduce_sum", "ReduceMean": "reduce_mean", "ReduceMax": "reduce_max", "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_prod", "ReduceL1": "reduce_l1_norm", "ReduceL2": "reduce_l2_norm",
    "ReduceSumSquare": "reduce_sum_square", "ReduceLogSumExp": "reduce_log_sum_exp",
}  # fmt: skip


@translates(*KINDS)
def reduce(to: Translation, operation: OnnxOperation) -> Any:
    x = to.input(operation, 0)
    axes = operation.attrs.get("axes")
    if axes is None and len(operation.inputs) > 1:
        axes = to.integers(operation, 1, "the axes")
    if not axes:
        if operation.attrs.get("noop_with_empty_axes"):
            return to.op("identity", x=x)
        axes = list(range(x.rank))
    if x.rank == 0:
        return to.op("identity", x=x)
    keep = bool(operation.attrs.get("keepdims", 1))
    kind = KINDS[operation.code]
    if to.is_bool(x):
        return to.cast(to.op(kind, x=to.cast(x, "int32"), axes=list(axes), keep_dims=keep), "bool")
    return to.op(kind, x=x, axes=list(axes), keep_dims=keep)


@translates("ArgMax", "ArgMin")
def place(to: Translation, operation: OnnxOperation) -> Any:
    kind = f"reduce_{operation.code.lower()}"
    keep = bool(operation.attrs.get("keepdims", 1))
    return to.op(kind, x=to.input(operation, 0), axis=int(operation.attrs.get("axis", 0)), keep_dims=keep)


@translates("Softmax")
def softmax(to: Translation, operation: OnnxOperation) -> Any:
    return to.op("softmax", x=to.input(operation, 0), axis=int(operation.attrs.get("axis", -1)))


@translates("LogSoftmax")
def log_softmax(to: Translation, operation: OnnxOperation) -> Any:
    x, axis = to.input(operation, 0), int(operation.attrs.get("axis", -1))
    x = to.op("sub", x=x, y=to.op("reduce_max", x=x, axes=[axis], keep_dims=True))
    return to.op("sub", x=x, y=to.op("reduce_log_sum_exp", x=x, axes=[axis], keep_dims=True))


@translates("CumSum")
def running_sum(to: Translation, operation: OnnxOperation) -> Any:
    (axis,) = to.integers(operation, 1, "the axis")
    attrs = operation.attrs
    return to.op(
        "cumsum", x=to.input(operation, 0), axis=axis, exclusive=bool(attrs.get("exclusive", 0)),
        reverse=bool(attrs.get("reverse", 0)),
    )  # fmt: skip


@translates("TopK")
def best(to: Translation, operation: OnnxOperation) -> Any:
    (count,) = to.integers(operation, 1, "how many are wanted")
    largest = bool(operation.attrs.get("largest", 1))
    return to.op(
        "topk", x=to.input(operation, 0), k=np.int32(count), axis=int(operation.attrs.get("axis", -1)),
        ascending=not largest,
    )  # fmt: skip
