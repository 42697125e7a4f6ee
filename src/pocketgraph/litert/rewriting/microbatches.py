"""Batches of large pictures are computed a few pictures at a time, so that what lies between layers stays in the cache.

    x[32, 224, 224, 3] ─ CONV_2D ─ … ─ SOFTMAX[32, 1000]
becomes, for 32 calls,
    x[1, 224, 224, 3] ─ CONV_2D ─ … ─ SOFTMAX[1, 1000]

Each thread computes pictures of its own (litert/running/microbatch_runner.py), and waits for no other between
operations. That holds where each row of each result is computed of the same picture's rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pocketgraph.litert.constant import Constant
from pocketgraph.litert.cost_model import (
    FEWER_READS,
    LEAST_MICROBATCH_BYTES,
    MICROBATCH_READS,
    MICROBATCH_WEIGHTS,
    UNEVEN_MICROBATCHES,
)
from pocketgraph.litert.operator_traits import CONVOLUTIONS, ELEMENTWISE, PADS, POOLS
from pocketgraph.litert.program import Operation, Program, Value

PER_PICTURE = (
    CONVOLUTIONS
    | POOLS
    | {"DEPTH_TO_SPACE", "LOCAL_RESPONSE_NORMALIZATION", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_DEPTH"}
)
"""Operators of pictures, of which they mix nothing. Not a trait: it is this pass that knows how to cut these."""


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
        if operation.convolution is not None or not _keeps_rows(operation, rows):
            return None
        for made in operation.outputs:
            each, rest = divmod(made.shape[0], batch) if made.shape else (0, 0)
            if rest or not each:
                return None
            rows[made] = each
    return rows if all(value in rows for value in program.outputs) else None


def _keeps_rows(operation: Operation, rows: dict[Value, int]) -> bool:
    """Whether the rows of a result that belong to a picture are computed of those of its operands alone."""
    code, inputs = operation.code, [value for value in operation.inputs if value is not None]
    if code in ELEMENTWISE:
        return _fits_rows(inputs, operation.outputs[0], rows)
    rank = len(inputs[0].shape)
    if code in ("BATCH_MATMUL", "CONCATENATION"):
        alike = {(value in rows, len(value.shape), value.shape[:1]) for value in inputs}
        return len(alike) == 1 and (rank > 2 if code == "BATCH_MATMUL" else operation.options["axis"] % rank > 0)
    if code == "SPLIT":
        axis, source = inputs
        return source in rows and axis.constant is not None and int(axis.constant.numpy()) % len(source.shape) > 0
    if inputs[0] not in rows or any(value in rows for value in inputs[1:]):
        return False
    if code in ("SOFTMAX", "LOG_SOFTMAX"):
        return rank > 1
    if code in ("SLICE", "STRIDED_SLICE"):
        return _takes_all_rows(operation, inputs[0].shape[0])
    if code in PER_PICTURE or code in ("FULLY_CONNECTED", "RESHAPE"):
        return True
    axes = OF_OTHER_AXES.get(code)
    operand = inputs[1].constant if axes is not None and len(inputs) > 1 else None
    return axes is not None and operand is not None and axes(operand.numpy(), rank)


def _takes_all_rows(operation: Operation, size: int) -> bool:
    """Whether a slice takes all of the first axis, of this size: from 0 on so many, or up to there one by one."""
    numbers = [value.constant.numpy() for value in operation.inputs[1:] if value is not None and value.constant]
    if len(numbers) < len(operation.inputs) - 1 or any(operation.options.values()):
        return False
    return [int(each[0]) for each in numbers] == [0, size, 1][: len(numbers)]


def _fits_rows(inputs: list[Value], made: Value, rows: dict[Value, int]) -> bool:
    """Whether operands go with each other row by row, or are the same for each row."""
    rank = len(made.shape)
    return all(
        value.shape[0] == made.shape[0] if value in rows else len(value.shape) < rank or value.shape[0] == 1
        for value in inputs
        if value in rows or value.shape
    ) and all(len(value.shape) == rank for value in inputs if value in rows)


def _reduces_others(axes: np.ndarray, rank: int) -> bool:
    return all(axis % rank > 0 for axis in axes.reshape(-1).tolist())


def _pads_others(borders: np.ndarray, rank: int) -> bool:
    return not borders[0].any()


def _turns_others(order: np.ndarray, rank: int) -> bool:
    return int(order[0]) == 0


OF_OTHER_AXES: dict[str, Callable[[np.ndarray, int], bool]] = {
    **dict.fromkeys(
        ("ARG_MAX", "ARG_MIN", "MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"),
        _reduces_others,
    ),
    **dict.fromkeys(PADS, _pads_others),
    "TRANSPOSE": _turns_others,
}
"""What says of an operator's second operand, and the first one's rank, whether the first axis stays as it is."""


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
