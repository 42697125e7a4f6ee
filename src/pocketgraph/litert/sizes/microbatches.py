"""Batches of large pictures are computed a few pictures at a time, so that what lies between layers stays in the cache.

    x[32, 224, 224, 3] ─ CONV_2D ─ … ─ SOFTMAX[32, 1000]
becomes, for 32 calls,
    x[1, 224, 224, 3] ─ CONV_2D ─ … ─ SOFTMAX[1, 1000]

Each thread computes pictures of its own (litert/running/microbatch_runner.py), and waits for no other between
operations. That holds where each row of each result is computed of the same picture's rows alone.
"""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.litert.constant import Constant
from pocketgraph.litert.cost_model import (
    FEWER_READS,
    LEAST_MICROBATCH_BYTES,
    MICROBATCH_READS,
    MICROBATCH_WEIGHTS,
    UNEVEN_MICROBATCHES,
)
from pocketgraph.litert.operator_traits import CONVOLUTIONS
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.sizes.row_independence import keeps_rows


def in_microbatches(program: Program, threads: int) -> tuple[Program, int] | None:
    """The program for a part of the batch, and how many such parts there are; None where it gains nothing, or the
    pictures of a batch are not known to be independent.

    Args:
        program: as it was lowered; it stays as it is.
        threads: how many compute a batch.
    """
    batches = {value.shape[:1] for value in program.inputs}
    if len(batches) != 1:
        return None
    ((batch,),) = batches if () not in batches else ((1,),)
    if batch < 2 or not any(operation.code in CONVOLUTIONS for operation in program.operations):
        return None
    rows = _rows(program, batch)
    if rows is None:
        return None
    count = _number(rows, program, batch, threads)
    return (_cut(program, rows, count), count) if count > 1 else None


def _number(rows: dict[Value, int], program: Program, batch: int, threads: int) -> int:
    """How many parts a batch is computed in: as many as can be, as long as reading the weights again costs nothing, or
    else little, and threads get about as many each; 1 where the batch stays whole."""
    if max(value.size * value.dtype.size for value in rows) < LEAST_MICROBATCH_BYTES * batch:
        return 1
    constants = {value for operation in program.operations for value in operation.inputs if value and value.constant}
    weights = sum(value.size * value.dtype.size for value in constants)
    reads = MICROBATCH_READS * program.work / batch
    limits = (min(MICROBATCH_WEIGHTS, most) for most in (reads, FEWER_READS * reads))
    least, better = (max(1, math.ceil(weights / most)) for most in limits)

    def is_even(pictures: int) -> bool:
        count, rest = divmod(batch, pictures)
        return not rest and math.ceil(count / threads) * threads <= UNEVEN_MICROBATCHES * count

    fitting = filter(is_even, range(least, batch // 2 + 1))
    return batch // min(fitting, key=lambda pictures: (pictures > better, abs(pictures - better)), default=batch)


def _rows(program: Program, batch: int) -> dict[Value, int] | None:
    """How many rows of each value, along its first axis, a picture has, picture by picture; values that depend on none
    have no entry. None where rows of several pictures may be mixed, or a result depends on none."""
    rows = dict.fromkeys(program.inputs, 1)
    for operation in program.operations:
        if not any(value in rows for value in operation.inputs if value is not None):
            continue
        if operation.convolution is not None or not keeps_rows(operation, rows):
            return None
        for made in operation.outputs:
            each, rest = divmod(made.shape[0], batch) if made.shape else (0, 0)
            if rest or not each:
                return None
            rows[made] = each
    return rows if all(value in rows for value in program.outputs) else None


SIZES_AT = {"RESHAPE": 1, "SLICE": 2, "STRIDED_SLICE": 2}
"""The operand that says the sizes of a result, or how far it goes. Not a trait: of operators that this pass cuts."""


def _cut(program: Program, rows: dict[Value, int], count: int) -> Program:
    """The program for one of ``count`` parts of the batch."""

    def part(value: Value) -> Value:
        shape = (value.shape[0] // count, *value.shape[1:])
        return Value(value.name, value.dtype, shape, None, value.quantization)

    parts = {value: part(value) for value in rows}
    operations = []
    for operation in program.operations:
        inputs = [value if value is None else parts.get(value, value) for value in operation.inputs]
        outputs = [parts.get(value, value) for value in operation.outputs]
        options, place = operation.options, SIZES_AT.get(operation.code, len(inputs))
        if "new_shape" in options and outputs[0] is not operation.outputs[0]:
            options = {**options, "new_shape": outputs[0].shape}
        sizes = inputs[place] if place < len(inputs) and outputs[0] is not operation.outputs[0] else None
        if sizes is not None and sizes.constant is not None:
            numbers = np.array([outputs[0].shape[0], *sizes.constant.numpy()[1:]], np.int32)
            constant = Constant.of(numbers if operation.code != "RESHAPE" else np.array(outputs[0].shape, np.int32))
            inputs[place] = Value(f"{outputs[0].name}/sizes", sizes.dtype, constant.shape, constant)
        operations.append(operation.replace(inputs=inputs, outputs=outputs, options=options))
    made = Program([parts[value] for value in program.inputs], [parts[value] for value in program.outputs], operations)
    made.rounded = dict(program.rounded)
    return made
