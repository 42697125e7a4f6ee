"""Lowerings of the gradients of activation functions."""

from __future__ import annotations

from collections.abc import Callable

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.kernels.selu_constants import SELU_ALPHA, SELU_SCALE
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.elementwise import binary
from pocketgraph.litert.lowerings.math.unary_gradients import require_alike
from pocketgraph.litert.lowerings.pieces import number
from pocketgraph.litert.program import Value


def where_positive(emit: Emit, gradient: Value, value: Value) -> Value:
    """``gradient`` where ``value`` is larger than 0, times 0 elsewhere."""
    return _masked(emit, gradient, binary(emit, "GREATER", value, number(emit, 0), BOOL))


def _masked(emit: Emit, gradient: Value, mask: Value) -> Value:
    return binary(emit, "MUL", gradient, emit.add("CAST", [mask], mask.shape, FLOAT))


def _relu6(emit: Emit, node: Node, gradient: Value, features: Value) -> Value:
    below = binary(emit, "LESS", features, number(emit, 6), BOOL)
    return _masked(emit, where_positive(emit, gradient, features), below)


def _leaky(emit: Emit, node: Node, gradient: Value, features: Value) -> Value:
    is_above = binary(emit, "GREATER", features, number(emit, 0), BOOL)
    small = binary(emit, "MUL", gradient, number(emit, float(node.attr("alpha", 0.2))))
    return emit.add("SELECT_V2", [is_above, gradient, small], gradient.shape, FLOAT)


def _elu(emit: Emit, node: Node, gradient: Value, result: Value) -> Value:
    low = binary(emit, "MINIMUM", result, number(emit, 0))
    return binary(emit, "MUL", gradient, binary(emit, "ADD", low, number(emit, 1)))


def _selu(emit: Emit, node: Node, gradient: Value, result: Value) -> Value:
    is_below = binary(emit, "LESS", result, number(emit, 0), BOOL)
    low = binary(emit, "ADD", result, number(emit, SELU_SCALE * SELU_ALPHA))
    slope = emit.add("SELECT_V2", [is_below, low, emit.constant_like(result, SELU_SCALE)], result.shape, FLOAT)
    return binary(emit, "MUL", gradient, slope)


def _softplus(emit: Emit, node: Node, gradient: Value, features: Value) -> Value:
    return binary(emit, "MUL", gradient, emit.add("LOGISTIC", [features], features.shape))


def _softsign(emit: Emit, node: Node, gradient: Value, features: Value) -> Value:
    divisor = binary(emit, "ADD", emit.add("ABS", [features], features.shape), number(emit, 1))
    return binary(emit, "DIV", gradient, binary(emit, "MUL", divisor, divisor))


GRADIENT_FIRST: dict[str, Callable[[Emit, Node, Value, Value], Value]] = {
    "ReluGrad": lambda emit, node, gradient, features: where_positive(emit, gradient, features),
    "Relu6Grad": _relu6,
    "LeakyReluGrad": _leaky,
    "EluGrad": _elu,
    "SeluGrad": _selu,
    "SoftplusGrad": _softplus,
    "SoftsignGrad": _softsign,
}
"""Gradients whose first input is the gradient that comes in, and the second the function's argument or result."""


@lowers(*GRADIENT_FIRST, takes=("float",))
def of_an_activation(emit: Emit, node: Node, gradient: Value, other: Value) -> Value:
    require_alike(emit, gradient, other)
    return GRADIENT_FIRST[node.op](emit, node, gradient, other)
