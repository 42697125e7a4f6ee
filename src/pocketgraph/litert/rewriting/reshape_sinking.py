"""Puts reshapes behind what follows them element by element, so that this can become part of what is before them.

    x ─CONV_2D─ RESHAPE ─ ADD bias ─ RELU
becomes
    x ─CONV_2D─ ADD bias ─ RELU ─ RESHAPE

which is one operator and a reshape: convolutions along one axis, over three axes and of every time step are written
with a reshape between the convolution and its bias.
"""

from __future__ import annotations

from pocketgraph.litert.operator_traits import BINARY, UNARY
from pocketgraph.litert.program import Operation, Program, Value, reshaped
from pocketgraph.litert.rewriting.value_uses import ValueUses


def reshape_later(program: Program) -> None:
    """Moves reshapes that nobody else reads behind operations by elements, scalars or vectors over channels."""
    view = ValueUses(program)
    operations: list[Operation] = []
    for operation in program.operations:
        operations.append(operation)
        place = _place(operation)
        if place is None:
            continue
        reshape = view.only_source(operation.inputs[place])
        source = reshape.inputs[0] if reshape is not None and reshape.code == "RESHAPE" else None
        if reshape is None or source is None or source.constant is not None or not source.shape:
            continue
        (result,) = operation.outputs
        spread = [value for index, value in enumerate(operation.inputs) if index != place and value is not None]
        if any(value.size != 1 and source.shape[-1] != value.size for value in spread):
            continue
        if source.dtype is not result.dtype or result.shape != reshape.outputs[0].shape:
            continue
        inner = Value(f"{result.name}/early", result.dtype, source.shape)
        operation.inputs[place] = source
        for index, value in enumerate(operation.inputs):
            if value in spread and value is not None and value.constant is not None and value.size != 1:
                vector = value.constant.reshaped((value.size,))
                operation.inputs[index] = Value(f"{value.name}/vector", value.dtype, vector.shape, vector)
        operation.outputs = [inner]
        view.uses[inner] = 1
        view.producers[inner] = operation
        activation = operation.options.get("activation")
        if activation:  # it goes by itself, so that the operation can become a part of another; they are joined again
            operation.options["activation"] = ""
            active = Value(f"{result.name}/active", result.dtype, source.shape)
            operations.append(Operation(activation, [inner], [active], {}, operation.nodes))
            view.uses[active] = 1
            view.producers[active] = operations[-1]
            inner = active
        later = reshaped(inner, result, (*reshape.nodes, *operation.nodes), sizes="sizes")
        operations.append(later)
        view.producers[result] = later
    program.operations = operations
    program.drop_unused()


def _place(operation: Operation) -> int | None:
    """Where the value stands that the operation goes over; None when it is not of this kind."""
    if operation.code in UNARY or operation.code == "SQUARE":
        return 0
    if operation.code not in BINARY or len(operation.inputs) != 2:
        return None
    varying = [index for index, value in enumerate(operation.inputs) if value is not None and value.constant is None]
    if len(varying) != 1:
        return None
    value, other = operation.operands[varying[0]], operation.operands[1 - varying[0]]
    is_spread = other.size == 1 or (value.shape and other.size == other.shape[-1] == value.shape[-1])
    return varying[0] if is_spread else None
