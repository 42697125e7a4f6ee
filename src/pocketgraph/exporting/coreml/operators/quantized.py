"""Eight bits: weights stay codes; tensors are quantized on the way where the graph says so (iOS 17)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.stored_weights import StoredWeights
from pocketgraph.exporting.coreml.translation import Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation


@translates("DequantizeLinear")
def dequantize(to: Translation, operation: OnnxOperation) -> Any:
    steps = to.static(operation, 1, "the step of its codes").astype(np.float32)
    codes = operation.inputs[0]
    assert codes is not None
    axis = operation.attrs.get("axis") if steps.size > 1 else None
    if codes.constant is not None:
        array = codes.constant.numpy()
        zeros = to.static_or_none(operation, 2)
        zeros = np.zeros(steps.shape, array.dtype) if zeros is None else zeros
        return StoredWeights(array, steps, zeros.astype(array.dtype), axis)
    return to.op("dequantize", input=to.input(operation, 0), **_grid(to, operation, steps, axis))


@translates("QuantizeLinear")
def quantize(to: Translation, operation: OnnxOperation) -> Any:
    steps = to.static(operation, 1, "the step of its codes").astype(np.float32)
    axis = operation.attrs.get("axis") if steps.size > 1 else None
    grid = _grid(to, operation, steps, axis)
    kind = grid["zero_point"].dtype.name
    return to.op("quantize", input=to.input(operation, 0), output_dtype=kind, **grid)


def _grid(to: Translation, operation: OnnxOperation, steps: Any, axis: int | None) -> dict[str, Any]:
    zeros = to.static_or_none(operation, 2)
    zeros = np.zeros(steps.shape, np.uint8) if zeros is None else zeros
    if axis is None:
        return {"scale": np.float32(steps.reshape(-1)[0]), "zero_point": zeros.reshape(-1)[0]}
    return {"scale": steps, "zero_point": zeros, "axis": np.int32(axis)}
