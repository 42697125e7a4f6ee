"""Gives rows of a table that differ much in size a factor each, as eight bits of one scale hold the largest ones only.

y = GATHER(table, at)      becomes      y = GATHER(table / largest of each row, at) * GATHER_ND(largest, at)
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value, reshaped
from pocketgraph.litert.rewriting.weight_folding import float_constant
from pocketgraph.quantization.core.operator_rules import MOST_RANK, is_table
from pocketgraph.quantization.core.step_limits import MOST_ROW_NOISE
from pocketgraph.quantization.core.value_range import Range


def factor_rows(program: Program) -> None:
    """Rewrites, in place, what looks up rows of such tables."""
    known: dict[Value, tuple[Value, Value] | None] = {}
    operations: list[Operation] = []
    for operation in program.operations:
        table, result = operation.inputs[0] if operation.inputs else None, operation.outputs[0]
        is_by_row = is_table(operation) and not operation.options.get("axis") and len(result.shape) <= MOST_RANK
        if table is None or not is_by_row or len(table.shape) != 2 or operation.options.get("batch_dims"):
            operations.append(operation)
            continue
        if table not in known:
            known[table] = _factored(table)
        found = known[table]
        if found is None:
            operations.append(operation)
            continue
        even, largest = found
        at = operation.operands[1]
        places = Value(f"{result.name}/places", at.dtype, (*at.shape, 1))
        rows, factors = (Value(f"{result.name}/{name}", result.dtype, shape)
                         for name, shape in (("rows", result.shape), ("factors", (*at.shape, 1))))  # fmt: skip
        operations += [
            operation.replace(inputs=[even, *operation.inputs[1:]], outputs=[rows]),
            reshaped(at, places, operation.nodes),
            Operation("GATHER_ND", [largest, places], [factors], {}, operation.nodes),
            Operation("MUL", [rows, factors], [result], {"activation": ""}, operation.nodes),
        ]
    program.operations = operations


def _factored(table: Value) -> tuple[Value, Value] | None:
    """The table with rows of 1 at most, and the factor of each, [rows, 1]; None where one scale serves all rows."""
    numbers: Array = table.content.numpy()
    if not np.isfinite(numbers).all():
        return None
    power = np.einsum("ij,ij->i", numbers, numbers, dtype=np.float64) / numbers.shape[1]
    step = Range(float(numbers.min()), float(numbers.max())).quantization().scales[0]
    if not power.any() or step**2 / 12 <= MOST_ROW_NOISE * float(np.median(power[power > 0])):
        return None
    largest = np.abs(numbers).max(axis=1, keepdims=True)
    largest[largest == 0] = 1
    shape = (len(numbers), 1)
    factors = Value(f"{table.name}/largest", table.dtype, shape, Constant.of(largest))
    return float_constant(f"{table.name}/rows", numbers / largest), factors
