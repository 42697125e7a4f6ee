"""Lowerings of the gradients of element-wise functions."""

from __future__ import annotations

from collections.abc import Callable

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.program import Value


def one_less(emit: Emit, value: Value) -> Value:
    return binary(emit, "SUB", number(emit, 1), value)


def _sigmoid(emit: Emit, result: Value, gradient: Value) -> Value:
    return binary(emit, "MUL", gradient, binary(emit, "MUL", result, one_less(emit, result)))


def _tanh(emit: Emit, result: Value, gradient: Value) -> Value:
    return binary(emit, "MUL", gradient, one_less(emit, binary(emit, "MUL", result, result)))


def _sqrt(emit: Emit, result: Value, gradient: Value) -> Value:
    return binary(emit, "DIV", binary(emit, "MUL", gradient, number(emit, 0.5)), result)


def _rsqrt(emit: Emit, result: Value, gradient: Value) -> Value:
    halved = binary(emit, "MUL", binary(emit, "MUL", gradient, result), number(emit, -0.5))
    return binary(emit, "MUL", halved, binary(emit, "MUL", result, result))


def _reciprocal(emit: Emit, result: Value, gradient: Value) -> Value:
    squared = binary(emit, "MUL", result, result)
    return binary(emit, "MUL", emit.add("NEG", [gradient], gradient.shape), squared)


RESULT_FIRST: dict[str, Callable[[Emit, Value, Value], Value]] = {
    "SigmoidGrad": _sigmoid,
    "TanhGrad": _tanh,
    "SqrtGrad": _sqrt,
    "RsqrtGrad": _rsqrt,
    "InvGrad": _reciprocal,
    "ReciprocalGrad": _reciprocal,
}
"""Gradients whose first input is the function's result, and the second the gradient that comes in."""


@lowers(*RESULT_FIRST, takes=("float",))
def of_a_function(emit: Emit, node: Node, result: Value, gradient: Value) -> Value:
    require_alike(emit, gradient, result)
    return RESULT_FIRST[node.op](emit, result, gradient)


def require_alike(emit: Emit, gradient: Value, other: Value) -> None:
    if gradient.shape != other.shape:
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for {list(other.shape)}")
