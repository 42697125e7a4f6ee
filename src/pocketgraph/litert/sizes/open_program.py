"""Makes a program that was lowered for some sizes run for others: follows those that inputs leave open through it.

    x [1, 10 open, 128] ─RESHAPE (10, 128)─ FULLY_CONNECTED ─RESHAPE (1, 10, 4, 32)─ …
becomes
    x [1, ?, 128] ─RESHAPE (-1, 128)─ FULLY_CONNECTED ─RESHAPE (1, -1, 4, 32)─ …

Operators compute the shapes of their results from those of their operands (``operator_sizes.py``); only what reshapes,
slices and the like take has to be changed. What the graph computes of sizes comes in with each call
(``size_operands.py``). What cannot be followed is not opened. Where a fixed size happened to be an open one's number, a
reshape may have been followed wrongly: whoever opens a program compares it once, with sizes that are all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Node, canonical
from pocketgraph.graph.op_traits import SLICE_MASKS
from pocketgraph.graph.record import Record
from pocketgraph.litert.operator_traits import PADS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.sizes.operator_sizes import (
    RESIZES,
    NotCertain,
    OperatorSizes,
    Sizes,
    constant_numbers,
    merged_sizes,
    taken_elements,
)
from pocketgraph.litert.sizes.size_guards import Guarded, Rows
from pocketgraph.litert.sizes.size_operands import Element, SizeInputs, SizeOperand, constant
from pocketgraph.litert.sizes.slices import SLICES, cut, known_counts, taken_by
from pocketgraph.litert.sizes.unit_axes import (
    elements_with_units,
    joined_rows,
    unit_axes,
    with_joined_rows,
    with_unit_axes,
)

__all__ = ["OpenProgram", "Origins", "SizeOperand", "Sizes", "opened"]


class Origins(Record):
    """The graph's nodes that a program was lowered from.

    Attributes:
        nodes: they, by name.
        size_operands: of nodes that take numbers that follow from the sizes, these by the places of the inputs.
        cuts: names of nodes that take some elements of open axes.
        value: gives the elements of a tensor that are the same for all sizes, None where there are none such.
    """

    nodes: Mapping[str, Node] = {}
    size_operands: Mapping[str, Mapping[int, SizeOperand]] = {}
    cuts: Collection[str] = ()
    value: Callable[[str], np.ndarray[Any, Any] | None] = lambda ref: None

    @property
    def following(self) -> set[str]:
        """Names of the nodes, but for reshapes, whose operators have to be there: for other sizes they do something."""
        return {name for name in {*self.size_operands, *self.cuts} if self.nodes[name].op != "Reshape"}


class OpenProgram(Record):
    """A program for all sizes.

    Attributes:
        program: it; its inputs are those that it had, and then those whose shapes are numbers.
        size_inputs: what these are in the graph.
        fits: says whether all operators take inputs of these shapes and these numbers.
        is_limited: whether there may be sizes that they do not take.
        resized: results that LiteRT resizes where the file says that their sizes are open, -1 for each.
    """

    program: Program
    size_inputs: tuple[str, ...]
    fits: Callable[[Rows, Rows], bool]
    is_limited: bool
    resized: Mapping[Value, tuple[int, ...]] = {}


def opened(
    program: Program,
    inputs: Sequence[Sizes],
    known: Mapping[tuple[int, ...], Collection[Sizes]],
    origins: Origins = Origins(),
) -> OpenProgram | None:
    """The program for any size where ``inputs`` have None; None where that is not certain.

    Args:
        program: as it was lowered for some sizes; it stays as it is.
        inputs: the sizes of its inputs, in order.
        known: by shapes for the same sizes, what is open of the graph's tensors that have them.
        origins: what it was lowered from.
    """
    opening = _Opening(program, inputs, known, origins)
    try:
        operations = [each for operation in program.operations for each in opening.follow(operation)]
        if not origins.following <= opening.met:  # for these sizes there was nothing to do for some
            return None
    except (NotCertain, ValueError):
        return None
    more = opening.size_inputs
    whole = Program(
        [*program.inputs, *more.values], list(program.outputs), [*more.operations, *operations], dict(program.rounded)
    )
    resized = {made: (-1,) * len(made.shape) for made in opening.counted}
    return OpenProgram(whole, tuple(more.refs), Guarded(opening.fits), opening.is_limited, resized)


class _Opening:
    """
    Attributes:
        size_inputs: the inputs whose shapes are numbers.
        is_limited: as OpenProgram's.
        counted: what slices make that are told numbers.
        met: names of nodes whose operators are there.
    """

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Sizes],
        known: Mapping[tuple[int, ...], Collection[Sizes]],
        origins: Origins,
    ) -> None:
        self.size_inputs = SizeInputs()
        self.is_limited = False
        self.counted: list[Value] = []
        self._known = known
        self._origins = origins
        self._inputs = list(program.inputs)
        self._sizes = OperatorSizes(dict(zip(program.inputs, inputs, strict=True)), {})
        self._followed: list[Operation] = []
        self._producers: dict[Value, Operation] = {}
        self._checked: list[tuple[Value, Value]] = []  # values, and what their sizes are to be; -1: any
        self._cuts = Counter(op.nodes[-1] for op in program.operations if op.code in SLICES and op.nodes)
        self.met: set[str] = set()

    def follow(self, operation: Operation) -> list[Operation]:
        """What computes the same for open sizes; notes those of its results."""
        taken = [self._sizes.of(value) for value in operation.inputs if value is not None]
        takes_sizes = operation.code in SIZE_OPERAND_AT and not self._origins.size_operands.keys().isdisjoint(
            operation.nodes
        )
        if not takes_sizes and not any(None in sizes for sizes in taken):
            return [operation]
        if operation.code == "RESHAPE":
            return self._reshape(operation)
        made = self._with_size_operands(operation)
        for each in made:
            self._sizes.vectors = self.size_inputs.unknown
            self._note(each, self._sizes.result(each))
        if made[-1].code == "STRIDED_SLICE":  # how many it takes of shorter axes, depends on these
            (result,) = operation.outputs
            counts = [-1 if size is None else size for size in self._sizes.of(result)]
            self._checked.append((result, self.size_inputs.vector(counts)))
        return made

    def fits(self, shapes: Rows, numbers: Rows) -> bool:
        """As OpenProgram's."""
        try:
            given = dict(zip(self._inputs, map(tuple, shapes), strict=True))
            sizes = OperatorSizes(given, self.size_inputs.numbers(numbers))
            sizes.axes, sizes.rows = self._sizes.axes, self._sizes.rows
            for operation in self._followed:
                found = sizes.result(operation)
                if any(size is None or size < 1 for size in found):
                    return False
                sizes.sizes.update(dict.fromkeys(operation.outputs, found))
            return all(
                wanted in (-1, size)
                for value, target in self._checked
                for size, wanted in zip(sizes.of(value), sizes.numbers(target), strict=True)
            )
        except (NotCertain, ValueError, TypeError):
            return False

    def _note(self, operation: Operation, sizes: Sizes) -> None:
        """Notes the sizes of an operation's results."""
        for result in operation.outputs:
            # What is of size 1 now may have been lowered as what always is.
            if len(sizes) != len(result.shape) or any(
                own == 1 if size is None else size != own for size, own in zip(sizes, result.shape, strict=True)
            ):
                raise NotCertain
            self._sizes.sizes[result], self._producers[result] = sizes, operation
        self._followed.append(operation)
        self.is_limited |= operation.options.get("padding") == "VALID" or operation.code in LIMITED

    def _with_size_operands(self, operation: Operation) -> list[Operation]:
        """The operation with the sizes that it takes, where it takes such."""
        code, operands = operation.code, self._origins.size_operands
        if code in SLICES:
            return self._slices(operation)
        place = SIZE_OPERAND_AT.get(code)
        if place is not None:
            numbers = constant_numbers(operation.inputs[place])
            found = self._size_operand(operation, numbers)
            if found is None:
                return [operation]
            inputs = list(operation.inputs)
            inputs[place] = self.size_inputs.vector(found, inputs[place].shape)  # type: ignore[union-attr]
            return [operation.replace(inputs=inputs)]
        for name in operation.nodes:
            if name in operands and code == "DEPTH_TO_SPACE":  # what a transposed convolution has become
                (target,) = operands[name].values()
                if target.numbers != operation.outputs[0].shape:
                    raise NotCertain
                self.met.add(name)
                self._checked.append((operation.outputs[0], self.size_inputs.vector(target.elements)))
        return [operation]

    def _size_operand(self, operation: Operation, numbers: Sequence[int]) -> list[Element] | None:
        """The operand that an operator's numbers come from; None where they are constants."""
        operands = self._origins.size_operands
        found = {
            each: name
            for name in operation.nodes
            for each in operands.get(name, {}).values()
            if list(each.numbers) == list(numbers)
        }
        if len(found) == 1:
            ((target, name),) = found.items()
            self.met.add(name)
            return target.elements
        if found or not operands.keys().isdisjoint(operation.nodes):
            raise NotCertain
        return None

    def _slices(self, operation: Operation) -> list[Operation]:
        """Slices by what the graph's node says of them, which holds for all sizes."""
        name = operation.nodes[-1] if operation.nodes else ""
        node = self._origins.nodes.get(name)
        if operation.code == "SLICE" and name not in self._origins.size_operands and self._takes_first(operation):
            self.met.add(name)
            return [operation]
        if node is None or node.op not in ("MirrorPad", "Slice", "StridedSlice"):
            return [operation]
        if node.op == "MirrorPad":
            return [self._strip(operation, node)]
        if self._cuts[name] > 1:
            raise NotCertain
        found = self._slice(operation, node) if node.op == "Slice" else [self._strided(operation, node)]
        self.met.add(name)
        return found

    def _takes_first(self, operation: Operation) -> bool:
        """Whether a slice takes the first element of each open axis."""
        numbers = (constant_numbers(operand) for operand in operation.inputs[1:3])
        places = zip(self._sizes.of(operation.inputs[0]), *numbers, strict=True)
        return all(size is not None or (start, count) == (0, 1) for size, start, count in places)

    def _strip(self, operation: Operation, node: Node) -> Operation:
        """A strip of what is mirrored: counted from the end where it lies there."""
        source = operation.operands[0]
        paddings = self._origins.value(canonical(node.data_inputs[1]))
        starts, counts = constant_numbers(operation.inputs[1]), constant_numbers(operation.inputs[2])
        begin, end, free_begin, free_end = [0] * len(starts), [0] * len(starts), 0, 0
        for axis, (start, count, size) in enumerate(zip(starts, counts, source.shape, strict=True)):
            if count == size:
                free_begin, free_end = free_begin | 1 << axis, free_end | 1 << axis
                continue
            far = int(np.asarray(paddings).max()) if paddings is not None else size
            if 2 * far + 1 >= size or count != 1:  # from which side it is meant is not certain
                raise NotCertain
            begin[axis] = start if start <= far else start - size
            end[axis] = begin[axis] + 1
            free_end |= (end[axis] == 0) << axis
        return cut(operation, source, operation.outputs[0], (begin, end), (free_begin, free_end))

    def _slice(self, operation: Operation, node: Node) -> list[Operation]:
        source, made = operation.operands[0], operation.outputs[0]
        starts, counts = self._numbers(node, 1), self._numbers(node, 2)
        rank = len(source.shape)
        whole = (1 << rank) - 1
        fixed = [_number(each) for each in starts]
        if fixed != [each.start for each in taken_by(operation)]:  # of axes in another order
            raise NotCertain
        if any(not isinstance(each, int) for each in (*starts, *counts)):
            return [self._by_counts(operation, source, made, starts, counts)]
        rest = Value(f"{made.name}/rest", made.dtype, tuple(n - b for n, b in zip(source.shape, fixed, strict=True)))
        free = sum(1 << axis for axis, count in enumerate(counts) if count == -1)
        ends = [0 if count == -1 else count for count in counts]
        self._checked.append((made, self.size_inputs.vector(counts)))
        begin, end, none = self.size_inputs.vector(starts), self.size_inputs.vector(ends), constant([0] * rank)
        return [
            cut(operation, source, rest, (begin, none), (0, whole)),
            cut(operation, rest, made, (none, end), (whole, free)),
        ]

    def _strided(self, operation: Operation, node: Node) -> Operation:
        source, made = operation.operands[0], operation.outputs[0]
        rank = len(source.shape)
        starts, ends, steps = (self._numbers(node, place) for place in (1, 2, 3))
        masks = {name: int(node.attr(name, 0)) for name in SLICE_MASKS}
        if masks["ellipsis_mask"] or masks["new_axis_mask"] or len(starts) > rank:
            raise NotCertain
        rest = range(len(starts), rank)
        free_begin, free_end = (masks[name] | sum(1 << axis for axis in rest) for name in SLICE_MASKS[:2])
        begin, end, step = ([*given, *[fill for _ in rest]] for given, fill in ((starts, 0), (ends, 0), (steps, 1)))
        for axis in range(len(starts)):
            by, first = step[axis], begin[axis]
            if not isinstance(by, int) or by < 1:
                raise NotCertain
            if masks["shrink_axis_mask"] >> axis & 1:
                if not isinstance(first, int) or masks["begin_mask"] >> axis & 1:
                    raise NotCertain
                end[axis] = first + 1
                free_end = free_end & ~(1 << axis) | (first == -1) << axis
        fixed = [[_number(each) for each in each_place] for each_place in (begin, end, step)]
        if taken_elements(source.shape, fixed, (free_begin, free_end)) != taken_by(operation):
            raise NotCertain  # of axes in another order
        counts = known_counts(self._sizes.of(source), (begin, end, step), (free_begin, free_end))
        if counts is not None:
            starts = [0 if free_begin >> axis & 1 else first for axis, first in enumerate(begin)]
            return self._by_counts(operation, source, made, starts, counts)
        places = self.size_inputs.vector(begin), self.size_inputs.vector(end)
        return cut(operation, source, made, places, (free_begin, free_end), self.size_inputs.vector(step))

    def _by_counts(
        self, operation: Operation, source: Value, made: Value, starts: Sequence[Element], counts: Sequence[Element]
    ) -> Operation:
        """The slice that LiteRT copies by rows, of which numbers are told; by element it copies a STRIDED_SLICE."""
        self.counted.append(made)
        inputs: list[Value | None] = [source, self.size_inputs.vector(starts), self.size_inputs.vector(counts)]
        return operation.replace(code="SLICE", inputs=inputs, outputs=[made], options={})

    def _numbers(self, node: Node, place: int) -> list[Element]:
        """What a node's input says."""
        target = self._origins.size_operands.get(node.name, {}).get(place)
        if target is not None:
            return target.elements
        value = self._origins.value(canonical(node.data_inputs[place]))
        if value is None:
            raise NotCertain
        return [int(number) for number in np.asarray(value).reshape(-1)]

    def _reshape(self, operation: Operation) -> list[Operation]:
        """A reshape that finds out the open size itself, or takes several."""
        (result,) = operation.outputs
        source, target = self._sizes.of(operation.inputs[0]), result.shape
        said = self._known.get(target, ())
        found = next(iter(said)) if len(said) == 1 else None
        if found is None:
            found = merged_sizes(source, operation.operands[0].shape, target) if not said else None
        self.met.update(operation.nodes)
        if found is not None and found.count(None) == 1:
            vector, numbers = _minus_one(found)
            operation = operation.replace(
                inputs=[operation.inputs[0], vector], options={**operation.options, "new_shape": numbers}
            )
            self._note(operation, found)
            return [operation]
        axes = unit_axes(operation.operands[0].shape, target)
        joined = joined_rows(operation, self._producers) if axes is None else None
        made: list[Operation] = []
        if axes is not None and {*said} <= {tuple([1 if axis is None else source[axis] for axis in axes])}:
            vector, made = with_unit_axes(operation, axes)
            self._sizes.axes[vector] = axes
        elif joined is not None and {*said} <= {(*self._sizes.of(joined[0])[: joined[1]], *target[joined[1] :])}:
            vector, made = with_joined_rows(operation, *joined)
            self._sizes.rows[vector] = joined
        if made:
            self._note(made[-1], self._sizes.result(made[-1]))
            return made
        last = next((name for name in reversed(operation.nodes) if name in self._origins.size_operands), "")
        operands = [*self._origins.size_operands.get(last, {}).values()]
        elements = elements_with_units(operands[0], target) if len(operands) == 1 else None
        if elements is None:
            raise NotCertain
        sizes = tuple(each if isinstance(each, int) and each != -1 else None for each in elements)
        options = {key: value for key, value in operation.options.items() if key != "new_shape"}
        operation = operation.replace(inputs=[operation.inputs[0], self.size_inputs.vector(elements)], options=options)
        self._note(operation, sizes)
        return [operation]


SIZE_OPERAND_AT = {**dict.fromkeys(RESIZES | PADS, 1), "TRANSPOSE_CONV": 0, "TILE": 1}
"""Which operand of an operator says sizes."""
LIMITED = frozenset(("MIRROR_PAD", "STRIDED_SLICE", "SPACE_TO_DEPTH", "TRANSPOSE_CONV"))
"""Operators that do not take all sizes."""


def _number(element: Element) -> int:
    """What an element was for the sizes that the program was lowered for."""
    return element if isinstance(element, int) else element[0].numbers[element[1]]


def _minus_one(sizes: Sizes) -> tuple[Value, tuple[int, ...]]:
    """A target in which -1 stands for what is open, as a value and as numbers."""
    target = [-1 if size is None else size for size in sizes]
    return constant(target), tuple(target)
