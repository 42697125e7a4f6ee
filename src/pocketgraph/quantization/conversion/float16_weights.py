"""Weights as float16: half of the bytes, expanded to float32 when the file is loaded."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT, HALF
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.program_pass import copied

SMALLEST = 64
"""Elements of a constant; fewer are not worth an operator."""
LARGEST = 65504.0  # of float16


def with_half_weights(program: Program) -> tuple[Program, list[str]]:
    """A program whose large float constants are float16 with a DEQUANTIZE behind each, and what is to be said of it.

    A constant with a value that float16 cannot hold stays as it is.
    """
    result = copied(program)
    expanded: dict[Value, Value] = {}
    kept: list[str] = []
    notes: list[str] = []
    operations: list[Operation] = []
    for operation in result.operations:
        made = [with_half_weights(body) for body in operation.bodies]
        operation.bodies = tuple(body for body, _ in made)
        notes += [note for _, said in made for note in said]
        for at, value in enumerate(operation.inputs):
            if value is None or value.constant is None or value.dtype is not FLOAT or value.size < SMALLEST:
                continue
            if value not in expanded:
                if not fits_float16(value.constant.numpy()):
                    kept.append(value.name)
                    expanded[value] = value
                else:
                    expansion = expanded_float16(value)
                    expanded[value] = expansion.outputs[0]
                    operations.append(expansion)
            operation.inputs[at] = expanded[value]
        operations.append(operation)
    result.operations = operations
    if kept:
        notes.append(
            f"{counted(len(kept), 'constant stays', 'constants stay')} float32: float16 does not "
            f"reach their values (the first: {kept[0]})"
        )
    return result, notes


def fits_float16(values: Array) -> bool:
    """Whether float16 reaches all numbers; infinity and NaN it has."""
    return bool(np.abs(values[np.isfinite(values)]).max(initial=0) <= LARGEST)


def expanded_float16(value: Value) -> Operation:
    """The operation that makes a float constant of its float16 form."""
    source = value.content
    constant = Constant(lambda: source.numpy().astype(np.float16), source.shape, np.dtype(np.float16))
    stored = Value(value.name, HALF, value.shape, constant)
    return Operation("DEQUANTIZE", [stored], [Value(f"{value.name}/float", FLOAT, value.shape)])
