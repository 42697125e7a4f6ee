"""Finds activations under other names, and lets the operation before one do it."""

from __future__ import annotations

import math

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.operator_traits import BOUNDS
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.value_uses import ValueUses

ACTIVATION_BOUNDS = {"RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
"""Between which values an activation keeps its results."""
ACTIVATIONS = tuple(ACTIVATION_BOUNDS)
TAKES_ACTIVATION = frozenset(
    (
        "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "ADD", "SUB", "MUL", "DIV", "MAX_POOL_2D",
        "AVERAGE_POOL_2D",
    )
)  # fmt: skip


def recognise_activations(program: Program) -> None:
    """Minimum and maximum with 0, 6, -1, 1 or with the scaled input itself are activations under another name."""
    view = ValueUses(program)
    gone = []
    for operation in program.operations:
        if operation.code not in BOUNDS:
            continue
        if _leaky(operation, view):
            continue
        value, bound = _bound(operation)
        if value is None:
            continue
        before = view.only_source(value)
        inner = before.code if before is not None else ""
        other = _bound(before)[1] if before is not None and inner in BOUNDS else None
        code = ""
        if operation.code == "MAXIMUM" and bound == 0:
            code = "RELU6" if inner == "MINIMUM" and other == 6 else "RELU"
        elif operation.code == "MINIMUM" and bound == 6 and inner == "RELU":
            code = "RELU6"
        elif (operation.code, bound, inner, other) in (("MAXIMUM", -1, "MINIMUM", 1), ("MINIMUM", 1, "MAXIMUM", -1)):
            code = "RELU_N1_TO_1"
        if not code:
            continue
        source = value
        if code != "RELU" and before is not None:
            inside = before.inputs[0] if before.code == "RELU" else _bound(before)[0]
            assert inside is not None
            source = inside
            operation.nodes = before.nodes + operation.nodes
            gone.append(before)
        operation.code, operation.inputs, operation.options = code, [source], {}
    program.drop(gone)


def _bound(operation: Operation) -> tuple[Value | None, float | None]:
    """The variable operand and the constant scalar of a minimum or maximum of floats."""
    left, right = operation.operands
    for value, operand in ((left, right), (right, left)):
        is_bound = operand.constant is not None and operand.size == 1 and value.shape == operation.outputs[0].shape
        if is_bound and operand.constant is not None and value.constant is None and value.dtype is FLOAT:
            return value, float(operand.constant.numpy().reshape(()))
    return None, None


def _leaky(operation: Operation, view: ValueUses) -> bool:
    """max(x, alpha * x) for an alpha from 0 to 1 is a leaky rectifier."""
    if operation.code != "MAXIMUM":
        return False
    left, right = operation.operands
    for value, other in ((left, right), (right, left)):
        product = view.only_source(other)
        if product is None or product.code != "MUL" or product.options.get("activation"):
            continue
        factors = [factor for factor in product.operands if factor is not value]
        if len(factors) != 1 or factors[0].constant is None or factors[0].size != 1:
            continue
        alpha = float(factors[0].constant.numpy().reshape(()))
        if 0 < alpha < 1 and value.dtype is FLOAT and product.outputs[0].shape == value.shape:
            operation.code, operation.inputs, operation.options = "LEAKY_RELU", [value], {"alpha": alpha}
            operation.nodes = product.nodes + operation.nodes
            return True
    return False


def fuse_activations(program: Program) -> None:
    """An activation is done by the operation before it where that can."""
    view = ValueUses(program)
    gone = []
    for operation in program.operations:
        if operation.code not in ACTIVATIONS:
            continue
        before = view.only_source(operation.inputs[0])
        if before is None or before.code not in TAKES_ACTIVATION or before.options.get("activation"):
            continue
        if before.outputs[0].dtype is not FLOAT:
            continue
        before.options["activation"] = operation.code
        view.absorb(before, operation)
        gone.append(operation)
    program.drop(gone)
