"""Which tensors share memory: reshapes with what they reshape, and results that take the place of an operand."""

from __future__ import annotations

import math
from collections.abc import Callable

from pocketgraph.exporting.arena import Buffer
from pocketgraph.graph.dtype import INT8
from pocketgraph.litert.program import Operation, Program, Value

SPARE = 3  # bytes behind int8 tensors, which kernels read four at a time


class Storage:
    """The buffer of each tensor that is computed.

    Args:
        program: the program; its operations are numbered in order.
        overwrites: says which operand of an operation its result may take the place of.
    """

    def __init__(self, program: Program, overwrites: Callable[[Operation], list[Value]]) -> None:
        self.buffers: list[Buffer] = []
        self.constants: dict[Value, Value] = {}
        self._of: dict[Value, Buffer] = {}
        end = len(program.operations)
        lasts = self._last_uses(program)
        for value in program.inputs:
            if value not in self._of:
                self._new(value, -1, end, is_input=True)
        for number, operation in enumerate(program.operations):
            if operation.code == "RESHAPE":
                self._alias(operation, lasts)
                continue
            spot = self._overwritten(operation, number, overwrites) if operation.outputs else None
            for place, value in enumerate(operation.outputs):
                if value in self._of:
                    continue  # a loop's array, changed in its place
                if place == 0 and spot is not None:
                    self._of[value] = spot
                    spot.last = max(spot.last, lasts.get(value, number))
                else:
                    self._new(value, number, lasts.get(value, number))
        for value in program.outputs:
            if value in self._of:
                self._of[value].last = end

    def buffer(self, value: Value) -> Buffer | None:
        """Where the tensor lies; None for constants."""
        return self._of.get(value)

    def scratch(self, size: int, step: int) -> Buffer:
        """Memory that one operation needs besides."""
        made = Buffer(size, step, step)
        self.buffers.append(made)
        return made

    def _new(self, value: Value, first: int, last: int, is_input: bool = False) -> None:
        spare = SPARE if value.dtype is INT8 else 0
        made = Buffer(math.prod(value.shape) * value.dtype.size + spare, first, last, is_input)
        self.buffers.append(made)
        self._of[value] = made

    def _alias(self, operation: Operation, lasts: dict[Value, int]) -> None:
        source, result = operation.operands[0], operation.outputs[0]
        if source in self._of:
            self._of[result] = self._of[source]
            self._of[source].last = max(self._of[source].last, lasts.get(result, 0))
        else:
            self.constants[result] = self.constants.get(source, source)

    def _overwritten(
        self, operation: Operation, number: int, overwrites: Callable[[Operation], list[Value]]
    ) -> Buffer | None:
        result = operation.outputs[0]
        size = math.prod(result.shape) * result.dtype.size + (SPARE if result.dtype is INT8 else 0)
        for value in overwrites(operation):
            buffer = self._of.get(value)
            if buffer is not None and not buffer.is_input and buffer.size == size and buffer.last <= number:
                return buffer
        return None

    @staticmethod
    def _last_uses(program: Program) -> dict[Value, int]:
        """The last operation that reads each tensor, also under the names that reshapes give it."""
        last: dict[Value, int] = dict.fromkeys(program.outputs, len(program.operations))
        for number in range(len(program.operations) - 1, -1, -1):
            operation = program.operations[number]
            for value in operation.inputs:
                if value is None:
                    continue
                use = last.get(operation.outputs[0], number) if operation.code == "RESHAPE" else number
                last[value] = max(last.get(value, -1), use)
        return last
