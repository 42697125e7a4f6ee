"""Whole numbers that become integers stay in float: the code nearest to 19 may be 18.9999, and a CAST makes that 18."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.operator_traits import GIVING_BOOL
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule, float_operands
from pocketgraph.quantization.core.quantization_state import QuantizationState

ROUNDING = frozenset(("CEIL", "FLOOR", "FLOOR_DIV", "ROUND"))
AVERAGING = frozenset(("AVERAGE_POOL_2D", "RESIZE_BILINEAR"))
"""Operators whose results have the codes of their operands, but are other numbers."""
KEEPING_WHOLE = frozenset(code for code, rule in OPERATOR_RULES.items() if rule is OperatorRule.SAME) - AVERAGING | {
    "ABS", "ADD", "FLOOR_MOD", "MUL", "NEG", "RELU", "RELU6", "SIGN", "SQUARE", "SUB", "SUM",
}  # fmt: skip
"""Operators that make whole numbers of whole numbers."""
JUMPS = frozenset(("CAST", "CEIL", "FLOOR", "FLOOR_DIV", "FLOOR_MOD")) | GIVING_BOOL
"""Operators whose results jump where an operand is a whole number."""


def whole_number_operations(program: Program) -> list[Operation]:
    """The operations that make whole numbers which something else makes integers or truth values of.

    ::

        x ─ FLOOR ─ ADD 1 ─ MINIMUM 23 ─ CAST ─ GATHER     ADD and MINIMUM: a corner of what is sampled between pixels

    Args:
        program: the float program.
    """
    whole: set[Value] = set()
    for operation in program.operations:
        floats = float_operands(operation)
        is_cast = operation.code == "CAST" and not floats
        keeps = operation.code in KEEPING_WHOLE and all(value in whole or _is_whole(value) for value in floats)
        if operation.code in ROUNDING or is_cast or (keeps and floats):
            whole.update(value for value in operation.outputs if value.dtype is FLOAT)
    jumping: set[Value] = set()
    found = []
    for operation in reversed(program.operations):
        makes = any(value in jumping for value in operation.outputs)
        if makes:
            found.append(operation)
        if makes or operation.code in JUMPS:
            jumping.update(whole.intersection(float_operands(operation)))
    return found[::-1]


def _is_whole(value: Value) -> bool:
    """Whether it is a constant of whole numbers."""
    if value.constant is None:
        return False
    numbers = value.constant.numpy()
    return bool((numbers == np.rint(numbers)).all())


def keep_whole_numbers(state: QuantizationState) -> bool:
    """The step."""
    return state.stay_in_float(whole_number_operations(state.program))
