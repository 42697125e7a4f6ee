"""Keeps weights of up to 255 levels on either side of zero exact on int8: as two weights over the same values twice.

    x ─FULLY_CONNECTED(w)   becomes   x,x ─CONCATENATION─ FULLY_CONNECTED(w cut to 127 levels, what was cut off)

The original tool's codes are unsigned with a zero of their own, so the longer side of zero has more levels than an int8
code. XNNPACK's kernels for unsigned weights are as slow as float.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import INT8
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.operator_traits import LARGEST_CODE
from pocketgraph.litert.program import Operation, Program, Quantization, Value


def widened(program: Program, operation: Operation, weights: Value, unit: float, source: Value) -> tuple[Value, Value]:
    """(``source`` twice along its last axis, int8 weights for that); both as they were when 127 levels are enough.

    Args:
        program: the program; the joining of the two is put before ``operation``.
        operation: the one that multiplies ``source`` by the weights.
        weights: float32 multiples of ``unit``, output channels first.
        unit: what one level is worth.
        source: values or codes.
    """
    levels: Array = np.rint(weights.content.numpy() / np.float32(unit))
    first = np.clip(levels, -LARGEST_CODE, LARGEST_CODE)
    rest = levels - first
    if not rest.any() or np.abs(rest).max() > LARGEST_CODE:
        return source, weights
    codes = np.concatenate([first, rest], axis=-1).astype(np.int8)
    count = codes.shape[0]
    quantization = Quantization((unit,) * count, (0,) * count, 0)
    shape = (*source.shape[:-1], 2 * source.shape[-1])
    twice = Value(f"{source.name}/twice", source.dtype, shape, None, source.quantization)
    joining = Operation(
        "CONCATENATION", [source, source], [twice], {"axis": len(shape) - 1, "activation": ""}, operation.nodes
    )
    program.operations.insert(program.operations.index(operation), joining)
    return twice, Value(f"{weights.name}/wide", INT8, codes.shape, Constant.of(codes), quantization)
