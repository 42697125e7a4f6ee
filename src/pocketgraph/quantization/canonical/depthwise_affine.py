"""Makes scaling by channel a layer with weights, so that each channel has a scale of its own and is rounded once.

    x ─MUL(by channel)─ ADD(by channel) RELU─ y      becomes      x ─DEPTHWISE_CONV_2D(1 x 1) RELU─ y

That is what batch norm in front of a layer is (DenseNet, ResNet v2). As MUL and ADD, the factors of all channels would
share one scale, and so would the products, which no activation has cut yet.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.mixed_precision.float_layers import preparation
from pocketgraph.quantization.program_pass import copied


def with_depthwise_affine(program: Program, keep: Collection[str] = ()) -> Program:
    """A program that computes the same; the argument itself where there is nothing to change.

    Args:
        program: the float program; it stays as it is.
        keep: names of tensors and nodes; what makes them stays as it is.
    """
    prepared = {operation.outputs[0] for operation in preparation(program)}
    result = copied(program)
    uses = result.uses()
    readers = {value: operation for operation in result.operations for value in operation.inputs if value is not None}
    absorbed: list[Operation] = []
    is_changed = False
    for operation in result.operations:
        made = operation.outputs[0]
        if operation.code != "MUL" or made in prepared or _is_named(operation, keep):
            continue
        factors = _by_channel(operation)
        if factors is None:
            continue
        value = next(v for v in operation.inputs if v is not None and v.constant is None)
        shifts: Array = np.zeros(len(factors), np.float32)
        after = readers.get(made) if uses[made] == 1 and not operation.options.get("activation") else None
        shift = None if after is None or _is_named(after, keep) else _shift(after, made)
        if after is not None and shift is not None:
            shifts, made, activation = shift, after.outputs[0], after.options.get("activation", "")
            nodes = (*operation.nodes, *after.nodes)
            absorbed.append(after)
        else:
            activation, nodes = operation.options.get("activation", ""), operation.nodes
        operation.code = "DEPTHWISE_CONV_2D"
        operation.inputs = [
            value,
            _constant(f"{made.name}/factors", factors.reshape(1, 1, 1, -1)),
            _constant(f"{made.name}/shifts", shifts),
        ]
        operation.outputs, operation.nodes = [made], nodes
        operation.options = {
            "padding": "VALID", "stride_h": 1, "stride_w": 1, "multiplier": 1, "dilation_h": 1, "dilation_w": 1,
            "activation": activation,
        }  # fmt: skip
        is_changed = True
    result.drop(absorbed)
    return result if is_changed else program


def _is_named(operation: Operation, names: Collection[str]) -> bool:
    return any(name in names for name in (*operation.nodes, *(value.name for value in operation.outputs)))


def _by_channel(operation: Operation) -> Array | None:
    """The constant operand of an arithmetic operation on pictures, a number for each channel; None for any other."""
    moving = [value for value in operation.inputs if value is not None and value.constant is None]
    constants = [value.constant for value in operation.inputs if value is not None and value.constant is not None]
    if len(moving) != 1 or len(constants) != 1 or moving[0].dtype is not FLOAT or len(moving[0].shape) != 4:
        return None
    channels = moving[0].shape[3]
    same = moving[0].shape == operation.outputs[0].shape
    if not same or channels < 2 or constants[0].shape[-1:] != (channels,):
        return None
    numbers: Array = constants[0].numpy().reshape(-1)
    return numbers if numbers.size == channels and np.isfinite(numbers).all() else None


def _shift(operation: Operation, value: Value) -> Array | None:
    """What an addition or subtraction adds to each channel of the value; None for any other operation."""
    if operation.code not in ("ADD", "SUB"):
        return None
    numbers = _by_channel(operation)
    if numbers is None or (operation.code == "SUB" and operation.inputs[0] is not value):
        return None
    result: Array = -numbers if operation.code == "SUB" else numbers
    return result


def _constant(name: str, numbers: Array) -> Value:
    return Value(name, FLOAT, numbers.shape, Constant.of(np.ascontiguousarray(numbers, np.float32)))


def apply(state: QuantizationState) -> bool:
    """The step."""
    before = state.program
    state.program = with_depthwise_affine(before, state.options.keep)
    return state.program is not before
