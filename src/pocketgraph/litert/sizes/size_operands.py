"""Sizes and places that a program for all sizes takes with each call: as the shape of an input that holds nothing.

sizes [0, 90, 70] ── SHAPE ── STRIDED_SLICE [90, 70] ── RESIZE_BILINEAR

What LiteRT reads off a shape it knows before it runs, when its inputs are resized: those that follow from such numbers
are set then, too. Those that follow from an input's elements would be set while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.op_traits import SLICE_MASKS
from pocketgraph.graph.record import Record
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Value


class SizeOperand(Record):
    """A tensor of whole numbers that follow from the sizes.

    Attributes:
        ref: its name in the graph.
        numbers: its elements for the sizes that the program was lowered for.
        known: those that are the same for all sizes; None for the others.
    """

    ref: str
    numbers: tuple[int, ...]
    known: tuple[int | None, ...]

    @property
    def elements(self) -> list[Element]:
        """Its numbers, or which of its elements they are."""
        return [(self, place) if number is None else number for place, number in enumerate(self.known)]


Element: TypeAlias = "int | tuple[SizeOperand, int]"
"""A number, or which element of which operand."""


class SizeInputs:
    """The inputs of a program whose shapes are numbers that it takes.

    Attributes:
        refs: what they are in the graph, in order.
        values: they.
        operations: what makes vectors of them.
        vectors: the elements of each vector: a number, or the place of an input and that of its element.
    """

    def __init__(self) -> None:
        self.refs: list[str] = []
        self.values: list[Value] = []
        self.operations: list[Operation] = []
        self.vectors: dict[Value, list[int | tuple[int, int]]] = {}
        self._shapes: list[Value] = []
        self._made: dict[tuple[object, ...], Value] = {}

    def vector(self, elements: Sequence[Element], shape: tuple[int, ...] = ()) -> Value:
        """A tensor of these numbers, a vector where no other shape is given."""
        shape = shape or (len(elements),)
        placed = [each if isinstance(each, int) else (self._place(each[0]), each[1]) for each in elements]
        key = (*placed, shape)
        if key not in self._made:
            self._made[key] = made = self._joined(placed, elements)
            if shape != made.shape:
                made = self._add("RESHAPE", [made, constant(shape)], shape, new_shape=shape)
                self._made[key] = made
            self.vectors[made] = placed
        return self._made[key]

    def numbers(self, given: Sequence[Sequence[int]]) -> Mapping[Value, list[int | None]]:
        """The elements of the vectors, where the inputs stand for these numbers.

        Raises:
            ValueError: one is negative, which no shape has.
        """
        places = [place for elements in self.vectors.values() for place in elements if not isinstance(place, int)]
        if any(given[at][element] < 0 for at, element in places):
            raise ValueError("a negative number")
        return {
            value: [each if isinstance(each, int) else given[each[0]][each[1]] for each in elements]
            for value, elements in self.vectors.items()
        }

    @property
    def unknown(self) -> Mapping[Value, list[int | None]]:
        """The elements of the vectors; None where an input stands for them."""
        return {v: [e if isinstance(e, int) else None for e in elements] for v, elements in self.vectors.items()}

    def _place(self, operand: SizeOperand) -> int:
        if operand.ref not in self.refs:
            self.refs.append(operand.ref)
            value = Value(operand.ref, INT32, (0, *(max(0, number) for number in operand.numbers)))
            self.values.append(value)
            self._shapes.append(self._add("SHAPE", [value], (len(operand.numbers) + 1,), out_type=2))
        return self.refs.index(operand.ref)

    def _joined(self, placed: Sequence[int | tuple[int, int]], elements: Sequence[Element]) -> Value:
        runs: list[list[int | tuple[int, int]]] = []
        for each in placed:
            last = runs[-1][-1] if runs else None
            if isinstance(each, int):
                follows = isinstance(last, int)
            else:
                follows = isinstance(last, tuple) and last == (each[0], each[1] - 1)
            if follows:
                runs[-1].append(each)
            else:
                runs.append([each])
        pieces = [self._piece(run) for run in runs]
        if len(pieces) == 1:
            return pieces[0]
        return self._add("CONCATENATION", pieces, (len(elements),), axis=0, activation="")

    def _piece(self, run: Sequence[int | tuple[int, int]]) -> Value:
        first = run[0]
        if isinstance(first, int):
            return constant([each for each in run if isinstance(each, int)])
        place, start = first
        bounds = (start + 1, start + 1 + len(run), 1)
        return self._add(
            "STRIDED_SLICE",
            [self._shapes[place], *(constant([each]) for each in bounds)],
            (len(run),),
            **dict.fromkeys(SLICE_MASKS, 0),
        )

    def _add(self, code: str, operands: Sequence[Value], shape: tuple[int, ...], **options: object) -> Value:
        made = Value("", INT32, shape)
        self.operations.append(Operation(code, [*operands], [made], dict(options)))
        return made


def constant(numbers: Sequence[int]) -> Value:
    """A vector of whole numbers."""
    elements = Constant.of(np.asarray(numbers, np.int32))
    return Value("", INT32, elements.shape, elements)
