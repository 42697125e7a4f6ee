"""Reshapes that put axes of size 1 in or leave such out, or take rows apart, whatever the other sizes are.

x [4, ?, ?] ─ SHAPE ─ CONCATENATION [1, 4, ?, ?] ─┐
└──────────────────────────────────────────── RESHAPE

x [?, ?, 8] ─ SHAPE ─ CONCATENATION [?, ?, 2, 3] ─────────────┐
└─ RESHAPE [-1, 8] ─ FULLY_CONNECTED [-1, 6] ──────────── RESHAPE
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.op_traits import SLICE_MASKS
from pocketgraph.litert.operator_traits import ELEMENTWISE
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.sizes.size_operands import Element, SizeOperand, constant

Axes: TypeAlias = "tuple[int | None, ...]"
"""Of each axis of a result, that of what it was made of; None for one of size 1 that was put in."""
SizeOf: TypeAlias = "int | tuple[Value, int]"
"""A number, or a tensor and which of its axes has that size."""


def unit_axes(source: tuple[int, ...], target: tuple[int, ...]) -> Axes | None:
    """Where the axes of ``target`` come from; None where but for axes of size 1 it has others."""
    waiting = [axis for axis, size in enumerate(source) if size != 1]
    if [source[axis] for axis in waiting] != [size for size in target if size != 1]:
        return None
    return tuple([None if size == 1 else waiting.pop(0) for size in target])


def elements_with_units(operand: SizeOperand, target: tuple[int, ...]) -> list[Element] | None:
    """What an operand says, with the axes of size 1 that ``target`` has; None where that has other axes."""
    waiting = list(zip(operand.numbers, operand.elements, strict=True))
    found: list[Element] = []
    for size in target:
        while waiting and waiting[0][1] == 1 != size:
            waiting.pop(0)
        if waiting and waiting[0][0] in (-1, size):
            found.append(waiting.pop(0)[1])
        elif size == 1:
            found.append(1)
        else:
            return None
    return None if any(element != 1 for _, element in waiting) else found


def joined_rows(reshape: Operation, producers: Mapping[Value, Operation]) -> tuple[Value, int] | None:
    """Where a reshape takes the rows of a matrix apart: of what they were joined, and how many of its first axes."""
    value, target = reshape.operands[0], reshape.outputs[0].shape
    while len(value.shape) == 2 and value in producers:
        operation = producers[value]
        source = operation.operands[0]
        if operation.code == "RESHAPE":
            places = range(2, len(source.shape))
            count = next((at for at in places if prod(source.shape[:at]) == value.shape[0]), 0)
            first = target[:count]  # of equal sizes it is not certain which is which
            return (source, count) if count and source.shape[:count] == first and len({*first}) == count else None
        if operation.code in ELEMENTWISE:
            alike = [each for each in operation.operands if each.shape == value.shape and each.constant is None]
            if not alike:
                return None
            source = alike[0]
        elif operation.code != "FULLY_CONNECTED":
            return None
        value = source
    return None


def with_joined_rows(reshape: Operation, source: Value, count: int) -> tuple[Value, list[Operation]]:
    """As ``with_unit_axes``, for what ``joined_rows`` gives."""
    rest = reshape.outputs[0].shape[count:]
    return with_sizes_of(reshape, 1, [*((source, axis) for axis in range(count)), *rest])


def with_unit_axes(reshape: Operation, axes: Axes) -> tuple[Value, list[Operation]]:
    """The vector that such a reshape takes, and the operations that make it and reshape."""
    return with_sizes_of(reshape, 1, [1 if axis is None else (reshape.operands[0], axis) for axis in axes])


def with_sizes_of(operation: Operation, at: int, elements: Sequence[SizeOf]) -> tuple[Value, list[Operation]]:
    """The vector of these elements, and the operations that make it and the operation that takes it as an input.

    Args:
        operation: as it was lowered for some sizes; it stays as it is.
        at: the place of the input.
        elements: each a number, or of which tensor it is the size of which axis.
    """
    pieces: list[Value] = []
    made: list[Operation] = []
    start = 0
    while start < len(elements):
        first, stop = elements[start], start + 1
        while stop < len(elements) and _follows(first, elements[stop], stop - start):
            stop += 1
        if isinstance(first, int):
            pieces.append(constant([each for each in elements[start:stop] if isinstance(each, int)]))
        else:
            value, axis = first
            piece, taking = part_of_shape(value, (axis, axis + stop - start), operation.nodes)
            pieces.append(piece)
            made += taking
        start = stop
    target = pieces[0]
    if len(pieces) > 1:
        target = Value("", INT32, (len(elements),))
        joining = {"axis": 0, "activation": ""}
        made.append(Operation("CONCATENATION", [*pieces], [target], joining, operation.nodes))
    options = {key: value for key, value in operation.options.items() if key != "new_shape"}
    inputs = [*operation.inputs[:at], target, *operation.inputs[at + 1 :]]
    return target, [*made, operation.replace(inputs=inputs, options=options)]


def _follows(first: SizeOf, other: SizeOf, distance: int) -> bool:
    """Whether an element is that many places behind another in what both are taken of."""
    if isinstance(first, int) or isinstance(other, int):
        return isinstance(first, int) and isinstance(other, int)
    return other[0] is first[0] and other[1] == first[1] + distance


def part_of_shape(value: Value, axes: tuple[int, int], nodes: tuple[str, ...]) -> tuple[Value, list[Operation]]:
    """Some sizes of a tensor, as a vector that LiteRT knows before it runs."""
    shape, part = Value("", INT32, (len(value.shape),)), Value("", INT32, (axes[1] - axes[0],))
    places = [constant([each]) for each in (*axes, 1)]
    return part, [
        Operation("SHAPE", [value], [shape], {"out_type": 2}, nodes),
        Operation("STRIDED_SLICE", [shape, *places], [part], dict.fromkeys(SLICE_MASKS, 0), nodes),
    ]
