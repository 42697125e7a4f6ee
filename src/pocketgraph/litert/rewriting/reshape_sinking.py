"""Puts reshapes behind what follows them by channel, so that this can become part of the layer before them.

    x ─CONV_2D─ RESHAPE ─ ADD bias ─ RELU
becomes
    x ─CONV_2D─ ADD bias ─ RELU ─ RESHAPE

which is one operator and a reshape: convolutions along one axis, over three axes and of every time step are written
with a reshape between the convolution and its bias.
"""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.operator_traits import ARITHMETIC
from pocketgraph.litert.program import Operation, Program, Value, reshaped
from pocketgraph.litert.rewriting.activation_fusion import ACTIVATIONS
from pocketgraph.litert.rewriting.value_uses import ValueUses
from pocketgraph.litert.rewriting.weight_folding import LINEAR

MOST_SPREAD = 1 << 20  # elements of a constant that is looked at in full


def reshape_later(program: Program) -> None:
    """Moves factors, offsets and activations from behind a reshape to the layer before it, which takes them in."""
    view = ValueUses(program)
    layers = {operation.outputs[0] for operation in program.operations if _may_take(operation)}
    done = [[operation] for operation in program.operations]  # what stands at the place of each
    places = {operation: place for place, operation in enumerate(program.operations) if operation.code == "RESHAPE"}
    for place, operation in enumerate(program.operations):
        found = _behind_reshape(operation, view, layers)
        if found is None:
            continue
        before, operand = found
        source = before.operands[0]
        activation = operation.options.get("activation", "")
        moved, result = source, operation.outputs[0]
        made: list[Operation] = []
        if operation.code in ARITHMETIC:
            first = Value(f"{result.name}/flat", FLOAT, source.shape)
            inputs: list[Value | None] = [
                (operand if value is not None and value.constant is not None else moved) for value in operation.inputs
            ]
            made.append(Operation(operation.code, inputs, [first], {"activation": ""}, operation.nodes))
            moved = first
        code = activation or (operation.code if operation.code in ACTIVATIONS else "")
        if code:
            last = Value(f"{result.name}/active", FLOAT, source.shape)
            made.append(Operation(code, [moved], [last], {}, operation.nodes))
            moved = last
        else:
            layers.add(moved)
        reshape = reshaped(moved, result, before.nodes)
        done[places[before]], done[place] = made, [reshape]
        places[reshape] = place
        for other in (*made, reshape):
            view.producers[other.outputs[0]] = other
            view.uses[other.outputs[0]] = 1 if other is not reshape else view.uses[result]
    program.operations = [operation for some in done for operation in some]


def _may_take(operation: Operation) -> bool:
    return operation.code in LINEAR and not operation.options.get("activation") and operation.whole is None


def _behind_reshape(operation: Operation, view: ValueUses, layers: set[Value]) -> tuple[Operation, Value | None] | None:
    """The reshape of a layer's results before an operation that the layer can take in, and its constant operand."""
    is_affine = operation.code in ARITHMETIC and len(operation.inputs) == 2
    if not is_affine and operation.code not in ACTIVATIONS:
        return None
    moving = [value for value in operation.inputs if value is not None and value.constant is None]
    if len(moving) != 1 or moving[0].dtype is not FLOAT or moving[0].shape != operation.outputs[0].shape:
        return None
    before = view.only_source(moving[0])
    if before is None or before.code != "RESHAPE":
        return None
    source = before.inputs[0]
    if source not in layers or view.uses[source] != 1 or source in view.outputs:
        return None
    if not is_affine:
        return before, None
    constant = next(value for value in operation.inputs if value is not None and value.constant is not None)
    vector = _by_channel(constant, moving[0].shape, source.shape)
    return (before, vector) if vector is not None else None


def _by_channel(constant: Value, shape: tuple[int, ...], before: tuple[int, ...]) -> Value | None:
    """A constant beside a tensor of ``shape`` as one for each channel of it in the shape ``before``; None where not."""
    if constant.size == 1 or not before:
        return constant if constant.size == 1 else None
    if constant.shape == before[-1:] == shape[-1:]:
        return constant
    numbers: Array = constant.content.numpy()
    if numbers.ndim > len(shape) or math.prod(shape) > MOST_SPREAD:
        return None
    rows = np.broadcast_to(numbers, shape).reshape(-1, before[-1])
    if not (rows == rows[0]).all():
        return None
    vector = Constant.of(np.ascontiguousarray(rows[0]))
    return Value(f"{constant.name}/by_channel", FLOAT, vector.shape, vector)
