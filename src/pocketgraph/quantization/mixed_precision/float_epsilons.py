"""What keeps a logarithm, a root or a quotient finite stays in float, where its codes would let zero through."""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule, is_layer
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import LEVELS, Range

POLES = {"LOG": 0, "RSQRT": 0, "DIV": 1}
"""Which operand must not be zero."""
GUARDS = ("ADD", "MAXIMUM", "MUL", "RELU", "SQRT")
NEAREST = 1.5  # steps from zero, nearer than which codes of the operations in front may come to it


def epsilon_operations(program: Program, ranges: Mapping[Value, Range] | None = None) -> list[Operation]:
    """The operations that make what must not be zero, back to the layer behind which a constant is added.

    ::

        x ─ FULLY_CONNECTED ─ ADD 1e-6 ─ RESHAPE ─ LOG     all in front of LOG: 1e-6 is no step of eight bits, and
                                                           rounded weights may give energies below 0

    Args:
        program: the float program.
        ranges: what tensors take, by which those are left out that stay far from zero.
    """
    producers = program.producers()
    found: dict[Operation, None] = {}
    for operation in program.operations:
        place = POLES.get(operation.code)
        value = operation.inputs[place] if place is not None else None
        if value is None or (ranges is not None and _is_far(ranges.get(value))):
            continue
        before: list[Operation] = []
        producer = producers.get(value)
        while producer is not None and not is_layer(producer):
            moving = [each for each in producer.inputs if each is not None and each.constant is None]
            moves = OPERATOR_RULES.get(producer.code) is OperatorRule.SAME or producer.code in GUARDS
            if not moves or len(moving) != 1:
                producer = None
                break
            before.append(producer)
            producer = producers.get(moving[0])
        if producer is not None:  # perhaps with the constant in its bias
            found |= dict.fromkeys([*before, producer])
        elif any(each.code in ("ADD", "MAXIMUM") for each in before):
            found |= dict.fromkeys(before)
    return list(found)


def _is_far(seen: Range | None) -> bool:
    """Whether all values, above zero or below it, are some steps away from it."""
    if seen is None:
        return True
    nearest, farthest = sorted((abs(seen.low), abs(seen.high)))
    return (seen.low > 0) == (seen.high > 0) and nearest >= NEAREST * farthest / LEVELS


def keep_epsilons(state: QuantizationState) -> bool:
    """The step."""
    return state.stay_in_float(epsilon_operations(state.program, state.ranges))
