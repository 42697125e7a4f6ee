"""Finds the unrolled loops of a program: layers that feed their own later steps, and what is computed between them.

A step's rounding comes back in all steps after it, and a state that grows over the steps has no good range for its
codes. There the products take their weights in eight bits and quantize their operand anew each time, and the few
operations on single numbers around them stay in float.
"""

from __future__ import annotations

from pocketgraph.graph.groups import by_key, closure
from pocketgraph.litert.operator_traits import HYBRID
from pocketgraph.litert.program import Operation, Program
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.operator_rules import is_quantizable_layer
from pocketgraph.quantization.core.quantization_state import QuantizationState


def recurrent(program: Program) -> tuple[list[Operation], list[Operation]]:
    """The operations of loops' steps, in order: layers that can quantize their operand themselves, and all others.

    Two layers with the same weights are steps of a loop when one depends on the other. What is between them belongs to
    the loop, and what is made of it up to the next layer with weights.
    """
    users = by_key((operator_rules.weights(one), one) for one in program.operations if is_quantizable_layer(one))
    readers, makers = program.consumers(), program.producers()

    def following(one: Operation) -> list[Operation]:
        return [reader for value in one.outputs for reader in readers.get(value, ())]

    def leading(one: Operation) -> list[Operation]:
        return [makers[value] for value in one.inputs if value in makers]

    inside: set[Operation] = set()
    for layers in users.values():
        if len(layers) > 1:
            after = set(closure(layers[:1], following))
            if layers[-1] in after:
                before = set(closure(layers[-1:], leading))
                inside |= after & before
    made = {value for operation in inside for value in operation.outputs}
    for operation in program.operations:
        if (
            operation not in inside
            and not is_quantizable_layer(operation)
            and any(value in made for value in operation.inputs)
        ):
            inside.add(operation)
            made.update(operation.outputs)
    ordered = [operation for operation in program.operations if operation in inside]
    layers = [operation for operation in ordered if is_quantizable_layer(operation) and operation.code in HYBRID]
    return layers, [operation for operation in ordered if operation not in layers]


def apply(state: QuantizationState) -> bool:
    """The step: layers in loops' steps become hybrid ones, and what is between them stays in float."""
    loops, between = recurrent(state.program)
    state.hybrid = [operation for operation in loops if operation not in state.kept]
    changed = state.stay_in_float(between)
    if state.hybrid:
        state.notes.append(
            f"{counted(len(state.hybrid), 'layer')} in the steps of a loop: weights in eight bits, "
            "the operand quantized anew in "
            "each step, and what is between them in float, because a step's rounding comes back in all later ones"
        )
    return changed or bool(state.hybrid)
