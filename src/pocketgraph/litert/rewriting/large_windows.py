"""Cuts large windows of depthwise convolutions into parts that XNNPACK has kernels for.

XNNPACK's depthwise kernels take windows of up to 25 elements. Larger ones go through its dense kernels channel by
channel, which takes 5 to 20 times as long (measured with LiteRT 2.3):

    x ─DEPTHWISE_CONV_2D 7x7, VALID
becomes
    x ─┬─ SLICE ─DEPTHWISE_CONV_2D 3x7 ─┬─ ADD ─ ADD
       ├─ SLICE ─DEPTHWISE_CONV_2D 3x7 ─┘        │
       └─ SLICE ─DEPTHWISE_CONV_2D 1x7 ──────────┘

where each slice has the rows and columns that its part of the window passes over. With padding ``SAME`` parts that lie
around the window's middle need no slices, as fewer zeros around the image move them where they belong: rows 0, 3 and 6,
then 1 and 5, then 2 and 4, each with gaps between them:

    x ─┬─ DEPTHWISE_CONV_2D 3x7, dilation 3 ─┬─ ADD ─ ADD
       ├─ DEPTHWISE_CONV_2D 2x7, dilation 4 ─┘        │
       └─ DEPTHWISE_CONV_2D 2x7, dilation 2 ──────────┘

A window that is a column times a row
in each channel, as one that blurs is, becomes two of those, before:

    x ─DEPTHWISE_CONV_2D 25x25
becomes
    x ─DEPTHWISE_CONV_2D 25x1 ─DEPTHWISE_CONV_2D 1x25
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.cost_model import ADDED_PART, COPIED_PART, DEPTHWISE_WINDOWS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.padding_and_dilation import same_borders, zeros_around

PRODUCT_ERROR = 2.0**-22
"""By how much of a window's largest element a column times a row may differ from it: weights' own rounding."""
MOST_PARTS = 64  # a kernel of 40 x 40; what more parts would save, nobody has measured


MOST_AROUND = 15  # rows or columns that are parted around their middle; there are ever more ways


class _WindowPart(NamedTuple):
    """A part of a window: its first row and column, how many there are of them, and how far apart they are."""

    row: int
    column: int
    rows: int
    columns: int
    row_step: int = 1
    column_step: int = 1

    @property
    def place(self) -> tuple[slice, slice]:
        """Its rows and columns in the window."""
        return (
            slice(self.row, self.row + (self.rows - 1) * self.row_step + 1, self.row_step),
            slice(self.column, self.column + (self.columns - 1) * self.column_step + 1, self.column_step),
        )


def cut_large_windows(program: Program) -> None:
    """Depthwise convolutions with constant windows of more than 25 elements become sums of smaller ones."""
    operations: list[Operation] = []
    for whole in program.operations:
        for operation in _column_and_row(whole) if parts_of(whole) else [whole]:
            parts = parts_of(operation)
            operations += _summed(operation, parts) if parts else [operation]
    program.operations = operations


def _column_and_row(whole: Operation) -> list[Operation]:
    """A column and a row in the place of a window that is their product; else the operation itself."""
    source, weights, bias = whole.operands
    _, height, width, channels = weights.shape
    if min(height, width) == 1 or channels != source.shape[3]:
        return [whole]
    filters = weights.content.numpy()[0].astype(np.float64)
    if not np.isfinite(filters).all():  # what they would spread over a whole row or column
        return [whole]
    places = np.abs(filters).reshape(-1, channels).argmax(axis=0)
    each = np.arange(channels)
    largest = filters.reshape(-1, channels)[places, each]
    column, row = filters[:, places % width, each], filters[places // width, :, each].T
    row = np.divide(row, largest, out=np.zeros_like(row), where=largest != 0)
    if (np.abs(column[:, None] * row[None] - filters) > PRODUCT_ERROR * np.abs(largest)).any():
        return [whole]
    (result,) = whole.outputs
    batch, _, across, _ = source.shape
    middle = Value(f"{result.name}/columns", FLOAT, (batch, result.shape[1], across, channels))
    nothing = _operand(f"{result.name}/no_bias", np.zeros(channels, np.float32))
    made = []
    for axis, (content, x, y, offset) in enumerate(
        ((column[:, None], source, middle, nothing), (row[None], middle, result, bias))
    ):
        kernel = _operand(f"{result.name}/{'row' if axis else 'column'}", content[None].astype(np.float32))
        still = ("stride_w", "dilation_w") if axis == 0 else ("stride_h", "dilation_h")
        options = {**whole.options, **dict.fromkeys(still, 1)}
        if axis == 0:
            options["activation"] = ""
        made.append(Operation("DEPTHWISE_CONV_2D", [x, kernel, offset], [y], options, whole.nodes))
    return made


def parts_of(operation: Operation) -> list[_WindowPart]:
    """The parts that a depthwise convolution is cut into; none where it is not."""
    if operation.code != "DEPTHWISE_CONV_2D" or len(operation.inputs) != 3:
        return []
    source, weights, bias = operation.inputs
    if source is None or weights is None or weights.constant is None or bias is None:
        return []
    if weights.dtype is not FLOAT or weights.quantization is not None or source.dtype is not FLOAT:
        return []
    height, width = weights.shape[1:3]
    if height * width <= DEPTHWISE_WINDOWS[-1]:
        return []
    sizes = [(r, c) for r, c in product(range(1, height + 1), range(1, width + 1)) if r * c <= DEPTHWISE_WINDOWS[-1]]
    parts = min((_cut(height, width, *size) for size in sizes), key=_time)
    if operation.options.get("padding") == "SAME":
        around = _around(height, width)
        copies = (len(parts) + 1) * COPIED_PART
        if around and _time(around) <= _time(parts) + copies and _all_in_place(source, weights, operation, around):
            parts = around
    return parts if len(parts) <= MOST_PARTS else []


def _cut(height: int, width: int, rows: int, columns: int) -> list[_WindowPart]:
    return [
        _WindowPart(row, column, min(rows, height - row), min(columns, width - column))
        for row, column in product(range(0, height, rows), range(0, width, columns))
    ]


@lru_cache(maxsize=64)
def _around(height: int, width: int) -> list[_WindowPart]:
    """The parts around the middle that take the least time; none where the window is too large to look for them."""
    if max(height, width) > MOST_AROUND:
        return []
    found: list[_WindowPart] = []
    least = 0
    for ways in _middle_sets(tuple(range(height))):
        made: list[_WindowPart] = []
        for rows in ways:
            options = [
                [_WindowPart(rows[0], c[0], len(rows), len(c), _step(rows), _step(c)) for c in columns]
                for columns in _middle_sets(tuple(range(width)))
                if all(len(rows) * len(c) <= DEPTHWISE_WINDOWS[-1] for c in columns)
            ]
            if not options:
                break
            made += min(options, key=_time)
        else:
            if not found or _time(made) < least:
                found, least = made, _time(made)
    return found


def _step(places: tuple[int, ...]) -> int:
    return places[1] - places[0] if len(places) > 1 else 1


@lru_cache(maxsize=256)
def _middle_sets(places: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """All ways to part places, which lie evenly around a middle, into sets that do, too, and have equal steps."""
    if not places:
        return [[]]
    first, last = places[0], places[-1]
    ways = []
    for count in range(2 if last > first else 1, len(places) + 1):
        step = (last - first) // (count - 1) if count > 1 else 1
        some = tuple(range(first, last + 1, step))
        if len(some) == count and some[-1] == last and set(some) <= set(places):
            rest = tuple(place for place in places if place not in some)
            ways += [[some, *others] for others in _middle_sets(rest)]
    return ways


def _all_in_place(source: Value, weights: Value, operation: Operation, parts: list[_WindowPart]) -> bool:
    """Whether ``SAME`` padding has each part see the pixels that it sees in the whole window."""
    whole = same_borders(source, weights, operation)
    dilations = operation.options["dilation_h"], operation.options["dilation_w"]
    for part in parts:
        own = operation.replace(options=_spread(operation, part))
        seen = same_borders(source, Value("", FLOAT, (1, part.rows, part.columns, 1)), own)
        for (before, _), (mine, _), first, dilation in zip(whole, seen, part[:2], dilations, strict=True):
            if before - mine != first * dilation:
                return False
    return True


def _spread(operation: Operation, part: _WindowPart) -> dict[str, Any]:
    """The options of a part with gaps between its rows and columns."""
    rows, columns = (operation.options[f"dilation_{side}"] for side in "hw")
    return {**operation.options, "dilation_h": rows * part.row_step, "dilation_w": columns * part.column_step}


def _time(parts: Iterable[_WindowPart]) -> int:
    """How long the parts take, in elements of a window."""
    return sum(next(k for k in DEPTHWISE_WINDOWS if k >= part.rows * part.columns) + ADDED_PART for part in parts)


def _summed(whole: Operation, parts: list[_WindowPart]) -> list[Operation]:
    """The operations that make what ``whole`` does."""
    source, weights, bias = whole.operands
    (result,) = whole.outputs
    made: list[Operation] = []
    is_around = whole.options["padding"] == "SAME" and _middle(parts[0], weights)
    if whole.options["padding"] == "SAME" and not is_around:
        made.append(zeros_around(source, same_borders(source, weights, whole), result.name, whole.nodes))
        source = made[0].outputs[0]
    filters = weights.content.numpy()
    nothing = _operand(f"{result.name}/no_bias", np.zeros(bias.size, np.float32))
    total: Value | None = None
    for number, part in enumerate(parts):
        name = f"{result.name}/part_{number}"
        taken = source
        if not is_around:
            taken = _slice(made, name, source, part, whole)
        window = filters[:, part.place[0], part.place[1]]
        share = Value(name, FLOAT, result.shape)
        operands = [taken, _operand(f"{name}/weights", window), nothing if number else bias]
        options = {**_spread(whole, part), "activation": ""} | ({} if is_around else {"padding": "VALID"})
        made.append(Operation("DEPTHWISE_CONV_2D", list(operands), [share], options, whole.nodes))
        if total is None:
            total = share
            continue
        is_last = number == len(parts) - 1
        summed = result if is_last else Value(f"{name}/sum", FLOAT, result.shape)
        activation = whole.options["activation"] if is_last else ""
        made.append(Operation("ADD", [total, share], [summed], {"activation": activation}, whole.nodes))
        total = summed
    return made


def _middle(part: _WindowPart, weights: Value) -> bool:
    """Whether a part lies around the middle of the window."""
    places = part.place
    return all(place.start + place.stop == size for place, size in zip(places, weights.shape[1:3], strict=True))


def _slice(made: list[Operation], name: str, source: Value, part: _WindowPart, whole: Operation) -> Value:
    """The rows and columns that a part of the window passes over; adds what takes them."""
    (result,) = whole.outputs
    steps = whole.options["stride_h"], whole.options["stride_w"]
    spread = whole.options["dilation_h"], whole.options["dilation_w"]
    begin = np.array([0, part.row * spread[0], part.column * spread[1], 0], np.int32)
    reach = [
        (count - 1) * step + (size - 1) * dilation + 1
        for count, step, size, dilation in zip(result.shape[1:3], steps, (part.rows, part.columns), spread, strict=True)
    ]
    taken = Value(f"{name}/taken", FLOAT, (source.shape[0], reach[0], reach[1], source.shape[3]))
    bounds = [_operand(f"{name}/begin", begin), _operand(f"{name}/size", np.array(taken.shape, np.int32))]
    made.append(Operation("SLICE", [source, *bounds], [taken], {}, whole.nodes))
    return taken


def _operand(name: str, content: Array) -> Value:
    """A constant operand: floats, or whole numbers that say where to cut."""
    constant = Constant.of(np.ascontiguousarray(content))
    return Value(name, FLOAT if content.dtype == np.float32 else INT32, constant.shape, constant)
