"""Slices in a program for all sizes: from and to size operands, or as many elements as these say."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.graph.op_traits import SLICE_MASKS
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.sizes.operator_sizes import NotCertain, Sizes, constant_numbers, taken_elements
from pocketgraph.litert.sizes.size_operands import Element, constant

SLICES = frozenset(("SLICE", "STRIDED_SLICE"))
SLICED_TYPES = (FLOAT, INT8)
"""Of what XNNPACK takes a STRIDED_SLICE, but no SLICE of ever so many elements; LiteRT itself copies a STRIDED_SLICE by
element."""


def cut(
    operation: Operation,
    source: Value,
    made: Value,
    places: tuple[Value | list[int], Value | list[int]],
    free: tuple[int, int],
    steps: Value | None = None,
) -> Operation:
    """A slice from and to these places; those of the ``free`` axes do not count."""
    begin, end = (place if isinstance(place, Value) else constant(place) for place in places)
    by = constant([1] * len(source.shape)) if steps is None else steps
    options = {"begin_mask": free[0], "end_mask": free[1]}
    return operation.replace(code="STRIDED_SLICE", inputs=[source, begin, end, by], outputs=[made], options=options)


def between(operation: Operation, begin: Sequence[int], end: Sequence[int]) -> Operation:
    """A slice as XNNPACK takes it, of axes of any length: a begin of 0 and an end of 0 are those of the axis.

    These do not count in the file, and are written as another axis's, so that slices of several axes share constants.
    """
    free = [sum(1 << axis for axis, at in enumerate(places) if not at) for places in (begin, end)]
    told = [[at or next(filter(None, places), 1) for at in places] for places in (begin, end)]
    return cut(operation, operation.operands[0], operation.outputs[0], (told[0], told[1]), (free[0], free[1]))


def taken_by(operation: Operation) -> list[range]:
    """Which elements of each axis a slice takes that was lowered for fixed sizes.

    Raises:
        NotCertain: what it takes is no constant.
    """
    source = operation.inputs[0]
    if source is None:
        raise NotCertain
    places = [constant_numbers(operand) for operand in operation.inputs[1:]]
    if operation.code == "SLICE":
        starts, counts = places
        return [range(start, start + count) for start, count in zip(starts, counts, strict=True)]
    begin, end = (operation.options.get(name, 0) for name in SLICE_MASKS[:2])
    return taken_elements(source.shape, places, (begin, end))


def known_counts(sizes: Sizes, places: Sequence[Sequence[Element]], free: tuple[int, int]) -> list[Element] | None:
    """How many elements a slice takes of each axis, -1 for all that follow; None where nothing says it.

    Args:
        sizes: of what it takes them.
        places: from where, to where and in which steps.
        free: the axes, a bit each, of which it takes all from the beginning, and all to the end.
    """
    found: list[Element] = []
    for axis, (size, first, last, by) in enumerate(zip(sizes, *places, strict=True)):
        start = 0 if free[0] >> axis & 1 else first
        if by != 1 or (isinstance(start, int) and start < 0):
            return None
        if free[1] >> axis & 1:
            found.append(-1)
        elif not isinstance(last, int) and start == 0:
            found.append(last)
        elif isinstance(last, int) and isinstance(start, int) and start < last <= (size or start + 1):
            found.append(last - start)
        else:
            return None
    return found if any(not isinstance(each, int) for each in (*places[0], *found)) else None
