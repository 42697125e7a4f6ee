"""Gives what stands for "never the largest" a number, as a range of codes has none for infinity.

    scores ─ADD(0 or -infinity)─ SOFTMAX           becomes    scores ─ADD(0 or -1e30)─ SOFTMAX
    x ─PADV2(-infinity)─ MAX_POOL_2D─ y            becomes    x ─PADV2(-1e30)─ MAX_POOL_2D─ y

Frameworks whose pools take amounts of padding write the second form. Its borders are in no maximum, so that they need
no room in the range: their code is the lowest one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Program, Value

MASKING = frozenset(("ADD", "PADV2", "SELECT", "SELECT_V2"))
"""Not a trait: what models write masks with; -infinity as weights is damage."""
MASKED = -1e30
"""What stands for -infinity: no value of a model comes near. LiteRT ends the process at codes with steps of 1e36."""


def bound_masks(program: Program) -> None:
    """Puts MASKED in the place of what is below it in constant masks and borders."""
    bounded: dict[Value, Value] = {}
    for operation in program.operations:
        if operation.code in MASKING:
            for value in operation.inputs:
                if value is not None and value not in bounded:
                    bounded[value] = _bounded(value)
            operation.inputs = [value if value is None else bounded[value] for value in operation.inputs]


def _bounded(value: Value) -> Value:
    if value.constant is None or value.dtype is not FLOAT:
        return value
    numbers = value.constant.numpy()
    if not (numbers < MASKED).any():
        return value
    return Value(value.name, FLOAT, value.shape, Constant.of(np.maximum(numbers, np.float32(MASKED))))


def masked_borders(program: Program) -> Iterator[tuple[Value, Value]]:
    """A tensor with borders of MASKED that max pools alone read, and the tensor without them, of each."""
    readers = program.consumers()
    for operation in program.operations:
        if operation.code != "PADV2" or operation.outputs[0] in program.outputs:
            continue
        source, _, filler = operation.operands
        is_masked = filler.constant is not None and filler.constant.numpy().max() <= MASKED
        if is_masked and all(pool.code == "MAX_POOL_2D" for pool in readers.get(operation.outputs[0], ())):
            yield operation.outputs[0], source
