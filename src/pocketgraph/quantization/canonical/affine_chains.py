"""Makes one product and one sum of what scales numbers in several steps, as pictures are in front of many networks.

    x ─MUL(1/255)─ ADD(0)─ SUB(means)─ DIV(deviations)─ y        becomes        x ─MUL─ ADD─ y

Vectors over three channels are what elementwise kernels are slowest at. What changes nothing is left out altogether.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import ARITHMETIC
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.value_uses import ValueUses

SMALLEST, LARGEST = 1e-30, 1e30  # of a divisor, and of what several steps together come to


def merge_affine_chains(program: Program) -> None:
    """Rewrites such chains of two steps and more, where fewer are left."""
    view = ValueUses(program)
    readers = {value: operation for operation in program.operations for value in operation.inputs if value is not None}
    taken: set[Operation] = set()
    made: dict[Operation, list[Operation]] = {}
    for operation in program.operations:
        if operation in taken or _step(operation) is None:
            continue
        chain = [operation]
        while True:
            result = chain[-1].outputs[0]
            reader = readers.get(result)
            if reader is None or view.uses[result] != 1 or result in view.outputs or _step(reader) is None:
                break
            if chain[-1].options.get("activation"):
                break
            chain.append(reader)
        new = _shorter(chain)
        if new is not None:
            taken.update(chain)
            made[chain[-1]] = new
    program.operations = [
        new
        for operation in program.operations
        for new in made.get(operation, [] if operation in taken else [operation])
    ]


def _step(operation: Operation) -> tuple[Array, Array] | None:
    """(factor, offset) float64 [channels or 1] of an operation that does no more than that; None for any other."""
    if operation.code not in ARITHMETIC or len(operation.inputs) != 2:
        return None
    source, constant = _operands(operation)
    result = operation.outputs[0]
    if source is None or constant is None or source.constant is not None or constant.constant is None:
        return None
    if source.shape != result.shape or not source.shape or {source.dtype, constant.dtype} != {FLOAT}:
        return None
    if constant.size not in (1, source.shape[-1]) or (constant.size > 1 and constant.shape[-1] != constant.size):
        return None
    numbers = constant.constant.numpy().reshape(-1).astype(np.float64)
    one, nothing = np.ones_like(numbers), np.zeros_like(numbers)
    if operation.code in ("ADD", "SUB"):
        return one, numbers if operation.code == "ADD" else -numbers
    if not np.isfinite(numbers).all() or (operation.code == "DIV" and (np.abs(numbers) < SMALLEST).any()):
        return None
    return (numbers if operation.code == "MUL" else 1 / numbers), nothing


def _operands(operation: Operation) -> list[Value | None]:
    """What a step changes and by what, which may stand in front in sums and products."""
    first = operation.inputs[0]
    is_turned = operation.code in ("ADD", "MUL") and first is not None and first.constant is not None
    return operation.inputs[::-1] if is_turned else operation.inputs


def _shorter(chain: list[Operation]) -> list[Operation] | None:
    """The operations that do the same; None where they are no fewer, or none at all is left."""
    factor, offset = np.ones(1), np.zeros(1)
    for operation in chain:
        step = _step(operation)
        assert step is not None
        factor, offset = factor * step[0], offset * step[0] + step[1]
    source, result = _operands(chain[0])[0], chain[-1].outputs[0]
    assert source is not None
    if max(np.abs(factor).max(), np.abs(offset).max()) > LARGEST:
        return None
    parts = [
        (code, numbers) for code, numbers, idle in (("MUL", factor, 1), ("ADD", offset, 0)) if (numbers != idle).any()
    ]
    if not 0 < len(parts) < len(chain):
        return None
    nodes = tuple(dict.fromkeys(name for operation in chain for name in operation.nodes))
    made = []
    for at, (code, numbers) in enumerate(parts):
        last = at == len(parts) - 1
        target = result if last else Value(f"{result.name}/scaled", FLOAT, result.shape)
        content = Constant.of(numbers.astype(np.float32) if numbers.size > 1 else np.float32(numbers[0]))
        operand = Value(f"{result.name}/{code.lower()}", FLOAT, content.shape, content)
        options = {"activation": chain[-1].options.get("activation", "") if last else ""}
        made.append(Operation(code, [source, operand], [target], options, nodes))
        source = target
    return made
