"""Moves transposes towards the outputs until they cancel, so that an NCHW graph runs as NHWC inside.

    x ─TRANSPOSE─ CONV_2D ─TRANSPOSE─ RELU ─TRANSPOSE─ CONV_2D ─TRANSPOSE─ y
becomes
    x ─TRANSPOSE─ CONV_2D ─ RELU ─ CONV_2D ─TRANSPOSE─ y
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import ELEMENTWISE
from pocketgraph.litert.program import Operation, Program, Value

Order = tuple[int, ...]

SINKING = ELEMENTWISE - {"GELU", "PRELU", "SELECT"}
REDUCING = frozenset(("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"))
BY_ROW = frozenset(("PAD", "PADV2", "MIRROR_PAD", "SLICE"))
"""Operators whose constant operands have one row for each axis."""


def sink_transposes(program: Program) -> None:
    """Rewrites the program; its inputs and outputs keep their layout."""
    if not any(operation.code == "TRANSPOSE" for operation in program.operations):
        return
    _Sinking(program).run()


class _Sinking:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.held: dict[Value, tuple[Value, Order]] = {}
        """Values that are their source transposed, where nobody has needed the transposed form yet."""
        self.same: dict[Value, Value] = {}
        self.done: list[Operation] = []

    def run(self) -> None:
        for operation in self.program.operations:
            operation.inputs = [None if v is None else self.same.get(v, v) for v in operation.inputs]
            if not self.absorb(operation):
                for value in operation.inputs:
                    self.materialise(value)
                self.done.append(operation)
        self.program.outputs = [self.same.get(value, value) for value in self.program.outputs]
        for value in self.program.outputs:
            self.materialise(value)
        self.program.operations = self.done
        self.program.drop_unused()

    def absorb(self, operation: Operation) -> bool:
        """Lets the operation work on untransposed operands; False when it cannot."""
        if operation.code == "TRANSPOSE":
            return self.transpose(operation)
        orders = {self.held[v][1] for v in operation.inputs if v is not None and v in self.held}
        if len(orders) != 1:
            return False
        order = orders.pop()
        if operation.code in SINKING:
            return self.elementwise(operation, order)
        if operation.code == "CONCATENATION":
            return self.concatenation(operation, order)
        if operation.code in REDUCING:
            return self.reduction(operation, order)
        if operation.code in BY_ROW:
            return self.by_row(operation, order)
        if operation.code == "RESHAPE":
            return self.reshape(operation, order)
        return False

    def materialise(self, value: Value | None) -> None:
        """Makes sure that the transposed form exists."""
        if value is None or value not in self.held:
            return
        source, order = self.held.pop(value)
        permutation = Constant.of(np.array(order, np.int32))
        operand = Value(f"{value.name}/order", INT32, (len(order),), permutation)
        self.done.append(Operation("TRANSPOSE", [source, operand], [value]))

    def transpose(self, operation: Operation) -> bool:
        value, permutation = operation.operands
        if permutation.constant is None:
            return False
        order: Order = tuple(int(axis) for axis in permutation.constant.numpy())
        source = value
        if value in self.held:
            source, before = self.held[value]
            order = tuple(before[axis] for axis in order)
        if order == tuple(range(len(order))):
            self.same[operation.outputs[0]] = source
        else:
            self.held[operation.outputs[0]] = source, order
        return True

    def elementwise(self, operation: Operation, order: Order) -> bool:
        operands: list[Value | None] = []
        back = inverse(order)
        for value in operation.inputs:
            if value is None:
                return False
            if value in self.held:
                operands.append(self.held[value][0])
            elif value.size == 1:
                operands.append(value)
            elif value.constant is not None and len(value.shape) <= len(order):
                full = (1,) * (len(order) - len(value.shape)) + value.shape
                turned = value.constant.reshaped(full).permuted(back)
                operands.append(Value(f"{value.name}/turned", value.dtype, turned.shape, turned))
            else:
                return False
        if len(operation.outputs[0].shape) != len(order):
            return False
        self.emit(operation, operands, order)
        return True

    def concatenation(self, operation: Operation, order: Order) -> bool:
        if not all(value in self.held for value in operation.inputs if value is not None):
            return False
        operands: list[Value | None] = [self.held[value][0] for value in operation.inputs if value is not None]
        operation.options["axis"] = order[operation.options["axis"]]
        self.emit(operation, operands, order)
        return True

    def reduction(self, operation: Operation, order: Order) -> bool:
        value, named = operation.operands
        if named.constant is None:
            return False
        axes = [int(axis) for axis in named.constant.numpy().reshape(-1)]
        moved = Constant.of(np.array(sorted(order[axis] for axis in axes), np.int32))
        operands: list[Value | None] = [self.held[value][0], Value(f"{named.name}/turned", INT32, moved.shape, moved)]
        if operation.options["keep_dims"]:
            self.emit(operation, operands, order)
            return True
        kept = [order[axis] for axis in range(len(order)) if axis not in axes]
        self.emit(operation, operands, tuple(sorted(kept).index(axis) for axis in kept))
        return True

    def by_row(self, operation: Operation, order: Order) -> bool:
        value, *rows = operation.inputs
        if value not in self.held:
            return False
        back = inverse(order)
        operands: list[Value | None] = [self.held[value][0]]
        for row in rows:
            if row is None or row.constant is None:
                return False
            if row.shape[:1] == (len(order),):
                turned = Constant.of(np.ascontiguousarray(row.constant.numpy()[list(back)]))
                operands.append(Value(f"{row.name}/turned", row.dtype, row.shape, turned))
            else:
                operands.append(row)
        self.emit(operation, operands, order)
        return True

    def reshape(self, operation: Operation, order: Order) -> bool:
        """A transpose that only moves dimensions of size 1 is a reshape itself."""
        value = operation.operands[0]
        source = self.held[value][0]
        moving = [axis for axis in order if source.shape[axis] != 1]
        if moving != sorted(moving):
            return False
        operation.inputs[0] = source
        self.done.append(operation)
        return True

    def emit(self, operation: Operation, operands: list[Value | None], order: Order) -> None:
        """Puts the operation on untransposed operands; its results are held."""
        results = []
        identity = order == tuple(range(len(order)))
        for value in operation.outputs:
            if identity:
                results.append(value)
                continue
            shape = tuple(value.shape[axis] for axis in inverse(order))
            made = Value(value.name, value.dtype, shape)
            value.name += "/transposed"
            self.held[value] = made, order
            results.append(made)
        operation.inputs, operation.outputs = operands, results
        self.done.append(operation)


def inverse(order: Order) -> Order:
    """The permutation that undoes ``order``."""
    return tuple(order.index(axis) for axis in range(len(order)))
