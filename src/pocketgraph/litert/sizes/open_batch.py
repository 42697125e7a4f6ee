"""Makes a program that was lowered for one row, or a few, take any number of rows: the batch is the first axis.

    x [1, 28, 28, 8] ─RESHAPE (1, 6272)─ FULLY_CONNECTED
becomes
    x [?, 28, 28, 8] ─RESHAPE (-1, 6272)─ FULLY_CONNECTED

For its own batch it computes the same, by the same operators. Steps of a recurrent network, which a reshape of a batch
of 1 puts in front of it, are followed behind it:

    x [1, 10, 8] ─RESHAPE (10, 1, 8)─ UNPACK 0          becomes          x [?, 10, 8] ─ UNPACK 1

What else was lowered for a batch of 1 may hold for that alone: whoever opens a program runs it for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pocketgraph.litert.operator_traits import UNARY
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.sizes.operator_sizes import NotCertain, constant_numbers
from pocketgraph.litert.sizes.row_independence import keeps_rows
from pocketgraph.litert.sizes.size_operands import constant
from pocketgraph.litert.sizes.slices import SLICED_TYPES, SLICES, between, taken_by

BY_ELEMENT = frozenset(("DEQUANTIZE", "FULLY_CONNECTED", "QUANTIZE")) | UNARY
"""What they make of a row does not depend on which axes count the rows."""


def with_open_batch(program: Program, is_open: Sequence[bool]) -> tuple[Program, Mapping[Value, tuple[int, ...]]]:
    """The program for any batch, and the shapes, -1 for the batch, that its file has to state.

    Args:
        program: as it was lowered for some batch; it stays as it is.
        is_open: of each input, whether its first size may change.

    Raises:
        NotCertain: an operator, which it names, cannot be followed.
    """
    batch = _BatchOpening(value for value, may_change in zip(program.inputs, is_open, strict=True) if may_change)
    operations: list[Operation] = []
    for operation in program.operations:
        try:
            operations += batch.follow(operation)
        except NotCertain:
            raise NotCertain(f"{operation.code} takes no open batch{operation.where}") from None
    if not batch.turned.keys().isdisjoint(program.outputs):
        raise NotCertain("the first axis of an output is its steps, not its samples")
    ends = [*program.inputs, *program.outputs]
    shapes = {value: (-1, *value.shape[1:]) for value in ends if batch.is_open(value)}
    return Program(program.inputs, program.outputs, operations, program.rounded), shapes


class _BatchOpening:
    """What has the batch, of what was followed so far.

    Attributes:
        turned: for values of [steps, 1, ...], which a batch of 1 has in either order, those of [batch, steps, ...].
    """

    def __init__(self, opened: Iterable[Value]) -> None:
        self.turned: dict[Value, Value] = {}
        self._open: set[Value | None] = {*opened}

    def is_open(self, value: Value | None) -> bool:
        """Whether the first size of a value is the batch, or a multiple of it."""
        return value in self._open

    def follow(self, operation: Operation) -> list[Operation]:
        """What computes the same for any batch."""
        if not any(map(self.is_open, operation.inputs)):
            return [operation]
        if operation.code == "RESHAPE" and operation.outputs[0].shape:
            made = self._reshape(operation)
        elif any(value in self.turned for value in operation.operands) or self._is_of_steps(operation):
            made = [self._turned(operation)]
        elif not keeps_rows(operation, self._open):
            raise NotCertain
        else:
            made = [self._of_all_rows(operation) if operation.code in SLICES else operation]
        if not all(result.shape for result in operation.outputs):
            raise NotCertain
        self._open.update(operation.outputs)
        return made

    def _reshape(self, operation: Operation) -> list[Operation]:
        (result,) = operation.outputs
        first = self.turned.get(operation.operands[0], operation.operands[0])
        if (1, *result.shape[:1]) == first.shape[:2] and result.shape[1:] == (1, *first.shape[2:]) != first.shape[1:]:
            self.turned[result] = first
            return []
        sizes = (-1, *result.shape[1:])
        options = {**operation.options, "new_shape": sizes}
        return [operation.replace(inputs=[first, constant(sizes)], options=options)]

    def _is_of_steps(self, operation: Operation) -> bool:
        """Whether it joins rows to steps, in front of which there is no batch of more than 1."""
        is_first = operation.code == "PACK" and not operation.options.get("axis", 0)
        return is_first and all(value.shape[:1] == (1,) for value in operation.operands)

    def _turned(self, operation: Operation) -> Operation:
        """What computes the same with the batch in front of the steps."""
        code, (first, *others) = operation.code, operation.operands
        if code == "UNPACK" and not operation.options.get("axis", 0):
            return operation.replace(inputs=[self.turned[first]], options={**operation.options, "axis": 1})
        (result,) = operation.outputs
        if result.shape[1:2] != (1,) or any(map(self.turned.__contains__, others)):
            raise NotCertain
        made = Value(result.name, result.dtype, (1, result.shape[0], *result.shape[2:]), None, result.quantization)
        self.turned[result] = made
        if code == "PACK":
            if first in self.turned or not all(map(self.is_open, operation.operands)):
                raise NotCertain
            return operation.replace(outputs=[made], options={**operation.options, "axis": 1})
        inputs = [self.turned[first], *operation.inputs[1:]]
        if code == "REVERSE_V2" and constant_numbers(others[0]) == [0]:
            return operation.replace(inputs=[inputs[0], constant([1])], outputs=[made])
        if code in BY_ELEMENT and not any(map(self.is_open, others)):
            return operation.replace(inputs=inputs, outputs=[made])
        raise NotCertain

    def _of_all_rows(self, operation: Operation) -> Operation:
        """A slice that takes all rows, however many there are."""
        source = operation.operands[0]
        if operation.code == "STRIDED_SLICE":
            return operation.replace(
                options={**operation.options, "end_mask": operation.options.get("end_mask", 0) | 1}
            )
        taken = taken_by(operation)
        if source.dtype not in SLICED_TYPES or not all(taken):  # between() takes an end of 0 for that of the axis
            raise NotCertain
        ends = [each.stop % size for each, size in zip(taken, source.shape, strict=True)]
        return between(operation, [each.start for each in taken], ends)
