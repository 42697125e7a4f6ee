"""What is to be quantized and how: the recipe, the operations that will compute with codes, and what they become."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.operator_rules import (
    OPERATOR_RULES,
    OperatorRule,
    can_quantize,
    float_operands,
    is_table,
)
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights
from pocketgraph.quantization.core.value_range import Range


@dataclass(frozen=True)
class ConversionRecipe:
    """How to quantize a program.

    Attributes:
        ranges: what values each tensor takes, without which it is kept in float; of a constant, where codes for less
            than its numbers do.
        keep: operations that go on computing in float.
        weights: codes of layers whose weights are not just rounded.
        io: one of ``io_types``: what goes in and comes out.
        hybrid: layers with int8 weights whose operand LiteRT quantizes anew each time and whose results are float.
        bits: of the codes of tensors, 8 or 16; weights have codes of their own.
        shifts: for results of weighted layers, by how many steps each channel's codes lie above their numbers.
    """

    ranges: Mapping[Value, Range]
    keep: Collection[Operation] = ()
    weights: Mapping[Operation, QuantizedWeights] = field(default_factory=dict)
    io: str = "float"
    hybrid: Collection[Operation] = ()
    bits: int = 8
    shifts: Mapping[Value, Array] = field(default_factory=dict)


@dataclass
class ConvertedProgram:
    """A quantized program, and what became of each tensor of the float program.

    Attributes:
        program: the quantized program.
        values: the int8 or float value that stands for each tensor.
        quantized: the float program's operations that compute with codes now.
    """

    program: Program
    values: dict[Value, Value]
    quantized: list[Operation]


def quantized_operations(program: Program, recipe: ConversionRecipe) -> list[Operation]:
    """The operations that will compute with codes."""
    kept = {*recipe.keep, *recipe.hybrid}
    made_in_float: set[Value] = set()
    chosen = []
    for operation in program.operations:
        moving = [value for value in float_operands(operation) if value.constant is None]
        known = all(value in recipe.ranges for value in moving) and all(
            value in recipe.ranges or OPERATOR_RULES.get(operation.code) in (OperatorRule.SAME, OperatorRule.FIXED)
            for value in operation.outputs
        )
        # Moving data about in codes pays only if they are codes already.
        idle = OPERATOR_RULES.get(operation.code) is OperatorRule.SAME and all(
            value in made_in_float for value in moving
        )
        idle = idle and not is_table(operation)
        if operation not in kept and known and not idle and can_quantize(operation, recipe.bits):
            chosen.append(operation)
        else:
            made_in_float.update(operation.outputs)
    return chosen


def shared_quantization(program: Program, coded: Collection[Operation]) -> dict[Value, Value]:
    """For each tensor the one that stands for all that must have its codes."""
    leader: dict[Value, Value] = {}

    def find(value: Value) -> Value:
        while leader.get(value, value) is not value:
            value = leader[value]
        return value

    for operation in coded:
        if OPERATOR_RULES[operation.code] is not OperatorRule.SAME:
            continue
        members = [v for v in (*float_operands(operation), *operation.outputs) if v.constant is None]
        for value in members[1:]:
            leader[find(value)] = find(members[0])
    values = [*program.inputs, *(value for operation in program.operations for value in operation.outputs)]
    return {value: find(value) for value in values}
