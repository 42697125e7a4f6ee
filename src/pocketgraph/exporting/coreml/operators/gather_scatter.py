"""Gathering by index and scattering."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.translation import Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation

ALONG_AN_AXIS = {"Gather": "gather", "GatherElements": "gather_along_axis"}
"""What Core ML calls these operators."""


@translates(*ALONG_AN_AXIS)
def gather(to: Translation, operation: OnnxOperation) -> Any:
    axis, code = int(operation.attrs.get("axis", 0)), ALONG_AN_AXIS[operation.code]
    return to.numbers(code, {"x": to.input(operation, 0)}, indices=to.input(operation, 1), axis=axis)


@translates("GatherND")
def gather_at_points(to: Translation, operation: OnnxOperation) -> Any:
    if operation.attrs.get("batch_dims", 0):
        raise to.unsupported("gathering in each of a batch")
    return to.numbers("gather_nd", {"x": to.input(operation, 0)}, indices=to.input(operation, 1))


@translates("ScatterElements")
def scatter_elements(to: Translation, operation: OnnxOperation) -> Any:
    values = {"data": to.input(operation, 0), "updates": to.input(operation, 2)}
    axis, mode = int(operation.attrs.get("axis", 0)), str(operation.attrs.get("reduction", "none"))
    how = "update" if mode == "none" else mode
    return to.numbers("scatter_along_axis", values, indices=to.input(operation, 1), axis=axis, mode=how)


@translates("ScatterND")
def scatter_at_points(to: Translation, operation: OnnxOperation) -> Any:
    mode = str(operation.attrs.get("reduction", "none"))
    how = "update" if mode == "none" else mode
    values = {"data": to.input(operation, 0), "updates": to.input(operation, 2)}
    return to.numbers("scatter_nd", values, indices=to.input(operation, 1), mode=how)


@translates("OneHot")
def one_hot(to: Translation, operation: OnnxOperation) -> Any:
    (depth,) = to.integers(operation, 1, "how many there are")
    off, on = to.static(operation, 2, "its two values").reshape(-1)
    indices = to.cast(to.input(operation, 0), "int32")
    result = operation.outputs[0]
    assert result is not None
    plain = [to.plain(np.asarray(value)) for value in (on, off)]
    if result.dtype.name == "bool":
        made = to.op("one_hot", indices=indices, one_hot_vector_size=depth, axis=int(operation.attrs.get("axis", -1)))
        return to.cast(made, "bool") if on else to.op("logical_not", x=to.cast(made, "bool"))
    return to.op(
        "one_hot", indices=indices, one_hot_vector_size=depth, axis=int(operation.attrs.get("axis", -1)),
        on_value=plain[0][()], off_value=plain[1][()],
    )  # fmt: skip
