"""Makes a program that was lowered for one row, or a few, take any number of rows: the batch is the first axis.

    x [1, 28, 28, 8] ─RESHAPE (1, 6272)─ FULLY_CONNECTED
becomes
    x [?, 28, 28, 8] ─RESHAPE (-1, 6272)─ FULLY_CONNECTED

For its own batch it computes the same, by the same operators. What was lowered for a batch of 1 may hold for that
alone, as a reshape does that stands for a transposition: whoever opens a program runs it for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgraph.litert.operator_traits import WEIGHTED
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.sizes.operator_sizes import NotCertain, OperatorSizes, Sizes, constant_numbers
from pocketgraph.litert.sizes.size_operands import constant
from pocketgraph.litert.sizes.slices import SLICES, taken_by

ALONG_AN_AXIS = frozenset(("GATHER", "PACK", "UNPACK"))
"""Their option says along which."""


def with_open_batch(program: Program, is_open: Sequence[bool]) -> tuple[Program, Mapping[Value, tuple[int, ...]]]:
    """The program for any batch, and the shapes of what goes in and out that has one, -1 for the batch.

    Args:
        program: as it was lowered for some batch; it stays as it is.
        is_open: of each input, whether its first size may change.

    Raises:
        NotCertain: an operator cannot be followed.
    """
    targets: dict[tuple[int, ...], Value] = {}
    opened = [value for value, may_change in zip(program.inputs, is_open, strict=True) if may_change]
    sizes = OperatorSizes({value: (None, *value.shape[1:]) for value in opened}, {})
    operations = []
    for operation in program.operations:
        if any(sizes.of(value)[:1] == (None,) for value in operation.operands):
            operation, found = _for_any_batch(operation, sizes, targets)
            for made in operation.outputs:
                if found[1:] != made.shape[1:]:
                    raise NotCertain
                sizes.sizes[made] = found if found[0] is None else made.shape
        operations.append(operation)
    ends = {value for value in (*program.inputs, *program.outputs) if sizes.of(value)[:1] == (None,)}
    return Program(program.inputs, program.outputs, operations, program.rounded), {
        value: (-1, *value.shape[1:]) for value in ends
    }


def _for_any_batch(
    operation: Operation, sizes: OperatorSizes, targets: dict[tuple[int, ...], Value]
) -> tuple[Operation, Sizes]:
    """What computes the same for any batch, and the sizes of each of its results; reshapes share ``targets``."""
    code, first = operation.code, operation.operands[0]
    own = operation.outputs[0].shape[1:]
    if code == "RESHAPE" and operation.outputs[0].shape:
        target = targets.setdefault((-1, *own), constant((-1, *own)))
        made = operation.replace(inputs=[first, target], options={**operation.options, "new_shape": (-1, *own)})
        return made, (None, *own)
    if code in SLICES:
        return _of_all_rows(operation), (None, *own)
    if code in ALONG_AN_AXIS and operation.options.get("axis", 0) and not operation.options.get("batch_dims"):
        moving = [value for value in operation.operands if value.constant is None]
        if all(sizes.of(value)[:1] == (None,) for value in moving):
            return operation, (None, *own)
    if code in WEIGHTED and sizes.of(operation.inputs[1])[:1] != (None,):
        return operation, (None, *own)
    return operation, sizes.result(operation)


def _of_all_rows(operation: Operation) -> Operation:
    """A slice that takes all rows, however many there are."""
    source, begin, size, *_ = operation.operands
    if taken_by(operation)[0] != range(source.shape[0]):
        raise NotCertain
    if operation.code == "SLICE":
        return operation.replace(inputs=[source, begin, constant((-1, *constant_numbers(size)[1:]))])
    return operation.replace(options={**operation.options, "end_mask": operation.options.get("end_mask", 0) | 1})
