"""Makes a program that was lowered for some sizes run for others: follows those that inputs leave open through it.

    x [1, 10 open, 128] ─RESHAPE (10, 128)─ FULLY_CONNECTED ─RESHAPE (1, 10, 4, 32)─ …
becomes
    x [1, ?, 128] ─RESHAPE (-1, 128)─ FULLY_CONNECTED ─RESHAPE (1, -1, 4, 32)─ …

Operators compute the shapes of their results from those of their operands; only what reshapes are told has to be
changed. What cannot be followed is not opened. Where a fixed size happened to be an open one's number, a reshape may
have been followed wrongly: whoever opens a program compares it once, with sizes that are all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pocketgraph.graph.dtype import INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value

Sizes: TypeAlias = "tuple[int | None, ...]"
"""A shape; None is a size that is open."""

ELEMENTWISE = frozenset((
    "ABS", "NEG", "EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "TANH", "LOGISTIC", "RELU", "RELU6", "RELU_N1_TO_1",
    "LEAKY_RELU", "ELU", "SIGN", "CAST", "ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE",
))  # fmt: skip
REDUCTIONS = frozenset(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"))


def opened(
    program: Program, inputs: Sequence[Sizes], known: Mapping[tuple[int, ...], Collection[Sizes]]
) -> Program | None:
    """The program for any size where ``inputs`` have None; None where that is not certain.

    Args:
        program: as it was lowered for some sizes; it stays as it is.
        inputs: the sizes of its inputs, in order.
        known: by shapes for the same sizes, what is open of the graph's tensors that have them.
    """
    sizes = _SizePropagation(program, inputs, known)
    try:
        operations = [sizes.follow(operation) for operation in program.operations]
    except _NotCertain:
        return None
    return Program(list(program.inputs), list(program.outputs), operations, dict(program.rounded))


class _NotCertain(Exception):  # noqa: N818 - no error
    """A size that cannot be followed."""


class _SizePropagation:
    def __init__(
        self, program: Program, inputs: Sequence[Sizes], known: Mapping[tuple[int, ...], Collection[Sizes]]
    ) -> None:
        self.known = known
        self.sizes: dict[Value, Sizes] = dict(zip(program.inputs, inputs, strict=True))

    def of(self, value: Value | None) -> Sizes:
        if value is None:
            raise _NotCertain
        return self.sizes.get(value, value.shape)

    def follow(self, operation: Operation) -> Operation:
        """The operation for open sizes; notes those of its results."""
        taken = [self.sizes.get(value, value.shape) for value in operation.inputs if value is not None]
        if not any(None in sizes for sizes in taken):
            return operation
        (result,) = operation.outputs if len(operation.outputs) == 1 else (None,)
        if result is None:
            raise _NotCertain
        if operation.code == "RESHAPE":
            sizes = self.reshaped(self.of(operation.inputs[0]), result.shape)
            operation = _with_target(operation, sizes)
        else:
            sizes = self.computed(operation, result)
        if len(sizes) != len(result.shape) or any(
            size not in (None, own) for size, own in zip(sizes, result.shape, strict=True)
        ):
            raise _NotCertain
        self.sizes[result] = sizes
        return operation

    def computed(self, operation: Operation, result: Value) -> Sizes:
        """The sizes of what an operator makes of open ones."""
        code, operands = operation.code, operation.inputs
        first = self.of(operands[0])
        if code in ELEMENTWISE:
            return self.broadcast([self.of(value) for value in operands], len(result.shape))
        if code == "SOFTMAX":
            return first
        if code == "FULLY_CONNECTED":
            weights = self.of(operands[1])
            if len(first) != 2 or first[1] is None or None in weights or operation.options.get("keep_num_dims"):
                raise _NotCertain
            return first[0], weights[0]
        if code == "BATCH_MATMUL":
            return self.multiplied(operation, first, self.of(operands[1]))
        if code == "TRANSPOSE":
            return tuple(first[axis] for axis in _numbers(operands[1]))
        if code in REDUCTIONS:
            axes = {axis % len(first) for axis in _numbers(operands[1])}
            if operation.options.get("keep_dims"):
                return tuple(1 if axis in axes else size for axis, size in enumerate(first))
            return tuple(size for axis, size in enumerate(first) if axis not in axes)
        if code == "GATHER" and operation.options.get("axis") == 0 and not operation.options.get("batch_dims"):
            if None in first:
                raise _NotCertain
            return (*self.of(operands[1]), *first[1:])
        if code == "CONV_2D":
            return self.convolved(operation, first)
        if code == "SLICE":  # of an open axis the first element alone: LiteRT resizes none of its results
            starts, counts = _numbers(operands[1]), _numbers(operands[2])
            for size, start, count in zip(first, starts, counts, strict=True):
                if size is None and (start, count) != (0, 1):
                    raise _NotCertain
            return tuple(counts)
        raise _NotCertain

    def broadcast(self, operands: Sequence[Sizes], rank: int) -> Sizes:
        """The sizes of operands that meet each other; where one is open the others are too, or 1."""
        found: list[int | None] = []
        for places in zip(*((1,) * (rank - len(sizes)) + sizes for sizes in operands), strict=True):
            met = {size for size in places if size != 1}
            if len(met) > 1:
                raise _NotCertain
            found.append(met.pop() if met else 1)
        return tuple(found)

    def multiplied(self, operation: Operation, one: Sizes, two: Sizes) -> Sizes:
        if len(one) != len(two) or len(one) < 2:
            raise _NotCertain
        rows, inner = one[-2:] if not operation.options.get("adj_x") else one[:-3:-1]
        other, columns = two[-2:] if not operation.options.get("adj_y") else two[:-3:-1]
        if inner != other:
            raise _NotCertain
        return (*self.broadcast([one[:-2], two[:-2]], len(one) - 2), rows, columns)

    def convolved(self, operation: Operation, source: Sizes) -> Sizes:
        """A convolution, of stride 1 or with what LiteRT itself pads for each size."""
        options, weights = operation.options, operation.inputs[1]
        steps, is_same = (options.get("stride_h"), options.get("stride_w")), options.get("padding") == "SAME"
        if weights is None or weights.constant is None or source[3] is None:
            raise _NotCertain
        if (options.get("dilation_h"), options.get("dilation_w")) != (1, 1) or not (is_same or steps == (1, 1)):
            raise _NotCertain
        sides: list[int | None] = []
        for size, step, window in zip(source[1:3], steps, weights.shape[1:3], strict=True):
            if not isinstance(step, int):
                raise _NotCertain
            sides.append(None if size is None else -(-size // step) if is_same else size - window + 1)
        return source[0], sides[0], sides[1], weights.shape[0]

    def reshaped(self, source: Sizes, target: tuple[int, ...]) -> Sizes:
        """What is open of a reshape's result: what the graph says of tensors of this shape, or else what merging sizes
        that lie side by side gives."""
        said = self.known.get(target, ())
        found = next(iter(said)) if len(said) == 1 else None
        if found is None:
            found = _merged(source, target) if not said else None
        if found is None or found.count(None) != 1:
            raise _NotCertain
        return found


def _merged(source: Sizes, target: tuple[int, ...]) -> Sizes | None:
    """What is open where ``target`` has the source's sizes, or products of some that lie side by side."""
    waiting = [size for size in source if size != 1]
    if None not in waiting:
        return None
    closed = 1
    for size in waiting:
        closed *= size or 1
    whole = 1
    for size in target:
        whole *= size
    number, rest = divmod(whole, closed)  # what all open sizes come to
    if rest or waiting.count(None) != 1:
        return None
    found: list[int | None] = []
    for size in target:
        product, is_open = 1, False
        while waiting and product < size:
            taken = waiting.pop(0)
            is_open |= taken is None
            product *= number if taken is None else taken
        if product != size:
            return None
        found.append(None if is_open else size)
    return None if waiting else tuple(found)


def _with_target(operation: Operation, sizes: Sizes) -> Operation:
    """A reshape that finds out the open size itself."""
    target = np.asarray([-1 if size is None else size for size in sizes], np.int32)
    shape = Value("", INT32, target.shape, Constant.of(target))
    return operation.replace(
        inputs=[operation.inputs[0], shape],
        options={**operation.options, "new_shape": tuple(map(int, target))},
    )


def _numbers(value: Value | None) -> list[int]:
    if value is None or value.constant is None:
        raise _NotCertain
    return [int(number) for number in value.constant.numpy().reshape(-1)]
