"""Lowerings of the gradients of element-wise functions, biases and slices."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.kernels.windows import Window
from pocketgraph.litert.emitter import Emit, attr_text
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.array import MOST_PADDED, slice_of
from pocketgraph.litert.lowerings.math import binary
from pocketgraph.litert.lowerings.pieces import pad
from pocketgraph.litert.lowerings.reduce import summed
from pocketgraph.litert.lowerings.sliding import at_their_places
from pocketgraph.litert.lowerings.special import SELU_ALPHA, SELU_SCALE, number
from pocketgraph.litert.program import Value


def where_above(emit: Emit, gradient: Value, value: Value, bound: float) -> Value:
    """``gradient`` where ``value`` is larger than ``bound``, times 0 elsewhere."""
    return _masked(emit, gradient, binary(emit, "GREATER", value, number(emit, bound), BOOL))


def _masked(emit: Emit, gradient: Value, mask: Value) -> Value:
    return binary(emit, "MUL", gradient, emit.add("CAST", [mask], mask.shape, FLOAT))


def _one_less(emit: Emit, value: Value) -> Value:
    return binary(emit, "SUB", number(emit, 1), value)


def _relu(emit: Emit, node: Node, gradient: Value, features: Value) -> Value:
    return where_above(emit, gradient, features, 0)


def _relu6(emit: Emit, node: Node, gradient: Value, features: Value) -> Value:
    below = binary(emit, "LESS", features, number(emit, 6), BOOL)
    return _masked(emit, where_above(emit, gradient, features, 0), below)


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
    "ReluGrad": _relu,
    "Relu6Grad": _relu6,
    "LeakyReluGrad": _leaky,
    "EluGrad": _elu,
    "SeluGrad": _selu,
    "SoftplusGrad": _softplus,
    "SoftsignGrad": _softsign,
}
"""Gradients whose first input is the gradient that comes in, and the second the function's argument or result."""


@lowers(*GRADIENT_FIRST)
def of_an_activation(emit: Emit, node: Node) -> None:
    gradient, other = (emit.require(value, "float") for value in emit.inputs(0, 2))
    _alike(emit, gradient, other)
    emit.result(GRADIENT_FIRST[node.op](emit, node, gradient, other))


def _sigmoid(emit: Emit, result: Value, gradient: Value) -> Value:
    return binary(emit, "MUL", binary(emit, "MUL", gradient, result), _one_less(emit, result))


def _tanh(emit: Emit, result: Value, gradient: Value) -> Value:
    return binary(emit, "MUL", gradient, _one_less(emit, binary(emit, "MUL", result, result)))


def _sqrt(emit: Emit, result: Value, gradient: Value) -> Value:
    return binary(emit, "DIV", binary(emit, "MUL", gradient, number(emit, 0.5)), result)


def _rsqrt(emit: Emit, result: Value, gradient: Value) -> Value:
    cubed = binary(emit, "MUL", result, binary(emit, "MUL", result, result))
    return binary(emit, "MUL", binary(emit, "MUL", gradient, number(emit, -0.5)), cubed)


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


@lowers(*RESULT_FIRST)
def of_a_function(emit: Emit, node: Node) -> None:
    result, gradient = (emit.require(value, "float") for value in emit.inputs(0, 2))
    _alike(emit, gradient, result)
    emit.result(RESULT_FIRST[node.op](emit, result, gradient))


def _alike(emit: Emit, gradient: Value, other: Value) -> None:
    if gradient.shape != other.shape:
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for {list(other.shape)}")


@lowers("BiasAddGrad")
def of_a_bias(emit: Emit, node: Node) -> None:
    gradient = emit.require(emit.input(0), "float")
    rank = len(gradient.shape)
    if rank < 2:
        raise emit.unsupported(f"the gradient of biases by rank {rank}")
    kept = 1 if attr_text(node, "data_format", "NHWC").startswith("NC") and rank > 2 else rank - 1
    emit.result(summed(emit, gradient, [axis for axis in range(rank) if axis != kept], keep=False))


@lowers("StridedSliceGrad")
def of_a_slice(emit: Emit, node: Node) -> None:
    """What was cut out, at its places, with zeros around and between."""
    shape = tuple(int(size) for size in np.asarray(emit.static(0, "the shape")).reshape(-1))
    gradient = emit.require(emit.input(4), "float", "int32", "int64")
    starts, sizes, steps = slice_of(emit, node, shape)
    if gradient.size != math.prod(sizes) or len(shape) > MOST_PADDED:
        raise emit.unsupported(f"a gradient of {list(gradient.shape)} for a slice of {sizes}")
    value = emit.reshape(gradient, sizes)
    for axis, (step, size) in enumerate(zip(steps, sizes, strict=True)):
        if step == 1 or size == 1:
            continue
        if step < 1 or value.dtype is not FLOAT:
            raise emit.unsupported(f"the gradient of a slice with the stride {step} of {value.dtype.name}")
        sizes[axis] = (size - 1) * step + 1
        flat = emit.reshape(value, (math.prod(sizes[:axis]), size, math.prod(sizes[axis + 1 :])))
        value = emit.reshape(at_their_places(emit, [flat], Window(1, step, 1, 0, 0, size), sizes[axis]), sizes)
    pairs = [(start, length - start - size) for start, size, length in zip(starts, sizes, shape, strict=True)]
    emit.result(pad(emit, value, np.array(pairs, np.int32).reshape(-1, 2)))
