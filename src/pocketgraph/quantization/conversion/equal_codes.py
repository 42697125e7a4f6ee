"""Codes that a converted program makes twice: by way of floats, or by a bound that bounds nothing."""

from __future__ import annotations

import numpy as np

from pocketgraph.litert.operator_traits import BOUNDS
from pocketgraph.litert.program import Operation, Program, Value


def same_codes(program: Program) -> dict[Value, Value]:
    """Codes that are those of another value, by way of floats: a8 ─DEQUANTIZE─ QUANTIZE─ b8, both on one grid.

    Or by a bound that is the last code there is: a8 ─MINIMUM 127─ b8.
    """
    producers, same = program.producers(), dict[Value, Value]()
    for operation in program.operations:
        if operation.code in BOUNDS and _bounds_nothing(operation) and operation.outputs[0] not in program.outputs:
            (data,) = (value for value in operation.operands if value.constant is None)
            if data.shape != operation.outputs[0].shape:  # the bound repeats it
                continue
            same[operation.outputs[0]] = same.get(data, data)
            continue
        before = producers.get(operation.inputs[0]) if operation.code == "QUANTIZE" and operation.inputs[0] else None
        codes = before.inputs[0] if before is not None and before.code == "DEQUANTIZE" else None
        made = operation.outputs[0]
        if codes is None or made in program.outputs:
            continue
        if (codes.dtype, codes.quantization) == (made.dtype, made.quantization):
            same[made] = same.get(codes, codes)
    return same


def _bounds_nothing(operation: Operation) -> bool:
    """Whether the other operand of a maximum is the lowest code, or that of a minimum the highest."""
    (made,), given = operation.outputs, operation.inputs
    bounds = [value.constant.numpy() for value in given if value is not None and value.constant is not None]
    if made.quantization is None or len(bounds) != 1:
        return False
    info, (bound,) = np.iinfo(made.dtype.numpy), bounds
    return bool((bound == (info.min if operation.code == "MAXIMUM" else info.max)).all())
