"""Folds scales and shifts that follow a convolution or matrix product into its weights and bias."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.operator_traits import ARITHMETIC
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.value_uses import ValueUses

LINEAR = {
    "CONV_2D": (0, 1, 2),
    "DEPTHWISE_CONV_2D": (0, 1, 2),
    "FULLY_CONNECTED": (0, 1, 2),
    "TRANSPOSE_CONV": (2, 1, 3),
}
"""For each linear operator where its data, weights and bias stand among its inputs."""


def fold_affine(program: Program) -> None:
    """Multiplications, divisions, additions and subtractions by a vector over channels become weights and bias.

    Sums of products of whole numbers are left as they are: they lose no digits only as long as they are such.
    """
    view = ValueUses(program)
    gone = []
    for operation in program.operations:
        if operation.code not in ARITHMETIC or operation.options.get("activation"):
            continue
        left, right = operation.operands
        if (left.constant is None) == (right.constant is None):
            continue
        value, operand, turned = (left, right, False) if right.constant is not None else (right, left, True)
        linear = view.only_source(value)
        if linear is None or linear.code not in LINEAR or linear.options.get("activation") or linear.whole is not None:
            continue
        channels = value.shape[-1]
        along_channels = operand.size == 1 or operand.size == operand.shape[-1] == channels
        if operation.outputs[0].shape != value.shape or not along_channels or value.dtype is not FLOAT:
            continue
        vector = operand.content.numpy().reshape(-1).astype(np.float64)
        if len(vector) != channels:
            vector = np.broadcast_to(vector, (channels,))
        if _apply(linear, operation.code, vector, turned):
            view.absorb(linear, operation)
            gone.append(operation)
    program.drop(gone)


def _apply(linear: Operation, code: str, vector: Array, turned: bool) -> bool:
    """Works ``linear`` (code) ``vector``, or the reverse when ``turned``, into the weights and the bias."""
    _, at_weights, at_bias = LINEAR[linear.code]
    weights = linear.inputs[at_weights]
    bias = linear.inputs[at_bias] if len(linear.inputs) > at_bias else None
    if (
        weights is None
        or weights.constant is None
        or weights.quantization is not None
        or (bias is not None and bias.constant is None)
    ):
        return False
    scale: Array | None = None
    shift: Array | None = None
    if code == "MUL":
        scale = vector
    elif code == "DIV":
        if turned:
            return False
        scale = 1 / vector
    elif code == "ADD":
        shift = vector
    else:
        scale = np.full(vector.shape, -1.0) if turned else None
        shift = vector if turned else -vector
    if scale is not None and not np.isfinite(scale).all():
        return False
    old = np.zeros(vector.shape) if bias is None or bias.constant is None else bias.constant.numpy().astype(np.float64)
    if bias is None and shift is None:
        new = old
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            new = old * (1 if scale is None else scale) + (0 if shift is None else shift)
        if not np.isfinite(new).all():
            return False
    if scale is not None:
        axis = 3 if linear.code == "DEPTHWISE_CONV_2D" else 0
        across = [-1 if index == axis else 1 for index in range(len(weights.shape))]
        scaled = weights.constant.scaled(scale.astype(np.float32).reshape(across))
        linear.inputs[at_weights] = Value(f"{weights.name}/scaled", FLOAT, weights.shape, scaled)
    linear.inputs += [None] * (at_bias + 1 - len(linear.inputs))
    linear.inputs[at_bias] = float_constant(f"{linear.outputs[0].name}/bias", new)
    return True


def float_constant(name: str, values: Array) -> Value:
    """These values as float32."""
    constant = Constant.of(values.astype(np.float32))
    return Value(name, FLOAT, constant.shape, constant)


def add_missing_biases(program: Program) -> None:
    """Convolutions and products without bias get one of zeros, without which XNNPACK does not take them."""
    zeros: dict[int, Value] = {}
    for operation in program.operations:
        if operation.code not in LINEAR or operation.code == "TRANSPOSE_CONV":
            continue
        at = LINEAR[operation.code][2]
        if operation.inputs[at] is None:
            count = operation.outputs[0].shape[-1]
            operation.inputs[at] = zeros.setdefault(count, float_constant(f"zeros_{count}", np.zeros(count)))
