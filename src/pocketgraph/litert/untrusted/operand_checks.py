"""What kernels of LiteRT 2.3 take on trust of an operator's operands, and end the process over where it is wrong.

Which are left out, how many there are, shapes, and the numbers of constants that say lengths and sizes. They were found
by running operators with each operand left out, one too many or too few, shapes that do not fit and constants of all
sizes. Sizes that a file leaves open, and what is computed, are known in a run alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from pocketgraph.errors import FormatError
from pocketgraph.formats.flatbuffers import Table

LARGEST = 1 << 40  # bytes of one tensor; no device has as much, and sizes of kernels stay within 64 bits
PADS = (34, 60, 100)
RESIZES = (23, 97)
DEPTHWISE, LRN, STRIDED_SLICE, SPLIT, SLICE, REVERSE_SEQUENCE, MATRIX_SET_DIAG = 4, 13, 45, 49, 65, 112, 115
BATCH_MATMUL, READ_VARIABLE, ASSIGN_VARIABLE, BROADCAST_ARGS, ATAN2, SIGN = 126, 143, 144, 145, 156, 158
SCATTER, GATHER, DILATE, SHIFT, CASE = 190, 201, 203, 207, 209
"""Of StableHLO, but for DILATE."""
WIDEST = 1 << 16  # channels that are normalized together

_LSTM = (1, 5, 9, 10, 11, 12, 16, 17, 20, 21, 22, 23)
_BOTH_WAYS = (1, 5, 9, 10, 11, 12, 16, 17, 18, 22, 26, 27, 28, 29, 33, 34, *range(39, 48))
LEFT_OUT: dict[int, tuple[int, ...]] = {
    3: (2,), 4: (2,), 9: (2,), 16: _LSTM, 27: (3,), 44: _LSTM, 46: (9, 10, 11), 52: _BOTH_WAYS, 67: (3,), 132: (2,),
    141: (3,),
}  # fmt: skip
"""By operator: the operands that may be left out, biases, gates and projections. Others follow the number -1."""

LEAST: dict[int, tuple[int, int]] = {
    **dict.fromkeys((*PADS, *RESIZES, BATCH_MATMUL, REVERSE_SEQUENCE, MATRIX_SET_DIAG, BROADCAST_ARGS, ATAN2, SHIFT,
    GATHER, DILATE), (2, 1)), SCATTER: (3, 1),
    DEPTHWISE: (3, 1), STRIDED_SLICE: (4, 1), SLICE: (3, 1), READ_VARIABLE: (1, 1), SIGN: (1, 1),
    ASSIGN_VARIABLE: (2, 0),
}  # fmt: skip
"""By operator: how many operands and results are read unasked."""


class UntrustedOperator(NamedTuple):
    """An operator: its builtin number, and what it reads and makes.

    Attributes:
        code: the builtin operator.
        shapes: of each operand, -1 for sizes that are left open; None where it is left out.
        constants: the numbers of an operand that is a constant of integers; None for all else.
        results: how many tensors it makes.
        option: the number in a slot of its options.
        newer: its options where it came from StableHLO.
    """

    code: int
    shapes: Sequence[tuple[int, ...] | None]
    constants: Callable[[int], tuple[int, ...] | None]
    results: int
    option: Callable[[int], int]
    newer: Table | None


def verify_operands(operator: UntrustedOperator) -> None:
    """Verifies one operator.

    Raises:
        FormatError: its kernel would read beyond what is there.
    """
    code, shapes = operator.code, operator.shapes
    may_be_left_out = LEFT_OUT.get(code, ())
    for place, shape in enumerate(shapes):
        if shape is None and place not in may_be_left_out:
            raise FormatError(f"its operand {place} is left out")
    operands, results = LEAST.get(code, (0, 0))
    if len(shapes) < operands or operator.results < results:
        raise FormatError(f"it has {len(shapes)} operands and {operator.results} results, not {operands} and {results}")
    check = CHECKS.get(code)
    if check is not None and (problem := check(operator)):
        raise FormatError(problem)


def _of_pad(operator: UntrustedOperator) -> str:
    shape, pads = operator.shapes[0], operator.constants(1)
    if shape is None or pads is None or len(pads) != 2 * len(shape):
        return ""
    whole = math.prod(max(size, 1) + max(*pads[2 * axis : 2 * axis + 2], 0) for axis, size in enumerate(shape))
    return f"it pads {list(shape)} by {list(pads)}" if min(pads, default=0) < 0 or whole > LARGEST else ""


def _of_resize(operator: UntrustedOperator) -> str:
    return "it resizes pictures without pixels" if 0 in (operator.shapes[0] or ())[1:3] else ""


def _of_split(operator: UntrustedOperator) -> str:
    parts = operator.option(0)
    return f"it makes {parts} parts and has {operator.results} results" if parts != operator.results else ""


def _of_normalization(operator: UntrustedOperator) -> str:
    radius = operator.option(0)
    return "" if 0 <= radius <= WIDEST else f"it normalizes over {radius} channels to each side"


def _of_lengths(operator: UntrustedOperator) -> str:
    shape, lengths, axis = operator.shapes[0], operator.constants(1), operator.option(0)
    if not shape or not lengths or not 0 <= axis < len(shape) or shape[axis] < 0:
        return ""
    is_inside = min(lengths) >= 0 and max(lengths) <= shape[axis]
    return "" if is_inside else f"it reverses beyond the {shape[axis]} steps that there are"


def _of_diagonals(operator: UntrustedOperator) -> str:
    shape, diagonal = (*operator.shapes, None, None)[:2]
    if shape is None or diagonal is None or -1 in (*shape, *diagonal):
        return ""
    needed = (*shape[:-2], min(shape[-2:], default=0))
    return f"diagonals {list(diagonal)} in matrices {list(shape)}" if math.prod(diagonal) < math.prod(needed) else ""


def _of_equal_shapes(operator: UntrustedOperator) -> str:
    is_open = any(-1 in (shape or ()) for shape in operator.shapes)
    return "its operands differ in their shapes" if len(set(operator.shapes)) > 1 and not is_open else ""


def _of_broadcast(operator: UntrustedOperator) -> str:
    first, second = operator.constants(0), operator.constants(1)
    if first is None or second is None:
        return ""
    sizes = zip_longest(reversed(first), reversed(second), fillvalue=1)
    fit = all(a >= 0 and b >= 0 and (a == b or 1 in (a, b)) for a, b in sizes)
    return "" if fit else f"the shapes {list(first)} and {list(second)} do not fit together"


def _of_dilation(operator: UntrustedOperator) -> str:
    shape, steps = operator.shapes[0], operator.constants(1)
    if shape is None or not steps or len(steps) != len(shape):
        return ""
    whole = math.prod(max(size, 1) * step for size, step in zip(shape, steps, strict=True))
    return f"it dilates {list(shape)} by {list(steps)}" if min(steps) < 1 or whole > LARGEST else ""


def _of_case(operator: UntrustedOperator) -> str:
    return "it has fewer than two branches" if operator.newer is None or len(operator.newer.numbers(0)) < 2 else ""


def _of_gather(operator: UntrustedOperator) -> str:
    if operator.newer is None:
        return "its options are missing"
    offsets, collapsed, started, sizes = (operator.newer.numbers(slot, "i64") for slot in (0, 1, 2, 4))
    shape = operator.shapes[0] or ()
    fits = len(sizes) == len(shape) == len(offsets) + len(collapsed)
    fits &= all(0 <= part <= size or size < 0 for part, size in zip(sizes, shape, strict=False))
    rank = len(operator.shapes[1] or ()) - 1 + len(offsets)
    return _of_indexed_axes(
        operator, 3, started, fits and _are_axes(offsets, rank) and _are_axes(collapsed, len(shape))
    )


def _of_scatter(operator: UntrustedOperator) -> str:
    if operator.newer is None:
        return "its options are missing"
    windows, inserted, scattered = (operator.newer.numbers(slot, "i64") for slot in (1, 2, 3))
    rank, updates = len(operator.shapes[0] or ()), len(operator.shapes[2] or ())
    fits = len(windows) + len(inserted) == rank and _are_axes(windows, updates) and _are_axes(inserted, rank)
    return _of_indexed_axes(operator, 4, scattered, fits)


def _of_indexed_axes(operator: UntrustedOperator, slot: int, axes: tuple[int, ...], fits: bool) -> str:
    """Of indices that are vectors along an axis that a slot tells, with a number for each of ``axes``."""
    assert operator.newer is not None
    shape, indices = operator.shapes[0] or (), operator.shapes[1] or ()
    along = operator.newer.number(slot, "i64")
    fits = fits and _are_axes(axes, len(shape)) and 0 <= along < len(indices) and indices[along] in (-1, len(axes))
    return "" if fits else "its axes do not fit what it reads"


def _are_axes(axes: tuple[int, ...], rank: int) -> bool:
    return len(set(axes)) == len(axes) and all(0 <= axis < rank for axis in axes)


CHECKS: dict[int, Callable[[UntrustedOperator], str]] = {
    **dict.fromkeys(PADS, _of_pad), **dict.fromkeys(RESIZES, _of_resize), LRN: _of_normalization, SPLIT: _of_split,
    REVERSE_SEQUENCE: _of_lengths, MATRIX_SET_DIAG: _of_diagonals, BROADCAST_ARGS: _of_broadcast,
    ATAN2: _of_equal_shapes, SHIFT: _of_equal_shapes, DILATE: _of_dilation, CASE: _of_case, GATHER: _of_gather,
    SCATTER: _of_scatter,
}  # fmt: skip
"""By operator: what is wrong with its operands, empty where nothing is."""
