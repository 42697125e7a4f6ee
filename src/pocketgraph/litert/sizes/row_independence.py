"""Which operators keep rows apart, those along the first axis: each row of a result is of the same row of operands."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from pocketgraph.litert.operator_traits import CONVOLUTIONS, ELEMENTWISE, PADS, POOLS, REDUCTIONS
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.sizes.operator_sizes import NotCertain, constant_numbers
from pocketgraph.litert.sizes.slices import SLICES, taken_by

BY_ROWS = (
    CONVOLUTIONS
    | POOLS
    | {
        "DEPTH_TO_SPACE", "DEQUANTIZE", "FULLY_CONNECTED", "LOCAL_RESPONSE_NORMALIZATION", "QUANTIZE", "RESHAPE",
        "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_DEPTH",
    }
)  # fmt: skip
"""Operators that never mix rows of their first operand."""


def keeps_rows(operation: Operation, rows: Container[Value | None]) -> bool:
    """Whether each row of an operation's results, or as many as it makes of one, is computed of that of its operands.

    Args:
        operation: some of its operands have rows.
        rows: the values that have; what has none is the same for all.
    """
    try:
        return _keeps_rows(operation, rows)
    except NotCertain:
        return False


def _keeps_rows(operation: Operation, rows: Container[Value | None]) -> bool:
    code, inputs = operation.code, [value for value in operation.inputs if value is not None]
    first, *others = inputs
    rank = len(first.shape)
    if code == "SELECT":  # which takes a truth for each row
        return False
    if code in ELEMENTWISE or code == "BATCH_MATMUL":
        return (rank > 2 or code in ELEMENTWISE) and _fits_rows(inputs, operation.outputs[0], rows)
    if code in ("CONCATENATION", "PACK"):
        axes = [operation.options.get("axis", 0)]
        alike = {(value in rows, len(value.shape), value.shape[:1]) for value in inputs}
        return len(alike) == 1 and _are_others(axes, rank + (code == "PACK"))
    if code == "GATHER" and operation.options.get("axis", 0) % rank == 0:
        first, *others = reversed(inputs)
    if code == "SPLIT":
        return others[0] in rows and _are_others(constant_numbers(first), len(others[0].shape))
    if first not in rows or any(value in rows for value in others):
        return False
    if code in SLICES:
        return taken_by(operation)[0] == range(first.shape[0])
    if code == "GATHER":
        return not operation.options.get("batch_dims")
    if code == "UNPACK":
        return _are_others([operation.options.get("axis", 0)], rank)
    if code in ("SOFTMAX", "LOG_SOFTMAX"):
        return rank > 1
    keeping = OF_OTHER_AXES.get(code)
    return code in BY_ROWS or (keeping is not None and keeping(constant_numbers(others[0]), rank))


def _fits_rows(inputs: list[Value], made: Value, rows: Container[Value | None]) -> bool:
    """Whether operands go with each other row by row, or are the same for each row."""
    rank = len(made.shape)
    return all(
        value.shape[0] == made.shape[0] if value in rows else len(value.shape) < rank or value.shape[0] == 1
        for value in inputs
        if value in rows or value.shape
    ) and all(len(value.shape) == rank for value in inputs if value in rows)


def _are_others(axes: Sequence[int], rank: int) -> bool:
    return all(axis % rank > 0 for axis in axes)


OF_OTHER_AXES: dict[str, Callable[[Sequence[int], int], bool]] = {
    **dict.fromkeys(
        REDUCTIONS | {"ARG_MAX", "ARG_MIN", "CUMSUM", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_PROD", "REVERSE_V2"},
        _are_others,
    ),
    **dict.fromkeys(PADS, lambda borders, rank: not any(borders[:2])),
    "TILE": lambda times, rank: times[0] == 1,
    "TRANSPOSE": lambda order, rank: order[0] == 0,
}
"""What says of an operator's second operand, and the first one's rank, whether the first axis stays as it is."""
