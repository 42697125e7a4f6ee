"""Arithmetic, comparisons and activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.stored_weights import StoredWeights
from pocketgraph.exporting.coreml.translation import Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation
from pocketgraph.kernels.selu_constants import SELU_ALPHA, SELU_SCALE

SAME_NAME = {
    "Abs": "abs", "Acos": "acos", "Asin": "asin", "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos",
    "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor", "Round": "round", "Sign": "sign", "Sin": "sin",
    "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh", "Relu": "relu", "Sigmoid": "sigmoid",
    "Softplus": "softplus", "Softsign": "softsign", "Identity": "identity", "Not": "logical_not",
}  # fmt: skip
"""Operators of one operand that both languages have."""
PAIRS = {
    "Add": "add", "Sum": "add", "Sub": "sub", "Mul": "mul", "Max": "maximum", "Min": "minimum", "Pow": "pow",
    "Equal": "equal", "Less": "less", "LessOrEqual": "less_equal", "Greater": "greater",
    "GreaterOrEqual": "greater_equal", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
}  # fmt: skip
"""Operators of two operands, or, folded, of more."""
WITH_ALPHA = {"Elu": ("elu", 1.0), "LeakyRelu": ("leaky_relu", 0.01)}


@translates(*SAME_NAME)
def unary(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    kind = SAME_NAME[operation.code]
    if kind == "logical_not":
        return to.op(kind, x=to.cast(x, "bool"))
    if to.is_float(x) or kind in ("abs", "sign", "identity"):
        return to.op(kind, x=x)
    return x if kind in ("ceil", "floor", "round") else to.cast(to.op(kind, x=to.cast(x, "fp32")), "int32")


@translates(*PAIRS)
def binary(to: Translation, operation: OnnxOperation) -> Any:
    if operation.code == "Add" and (shifted := _shifted_codes(to, operation)) is not None:
        return shifted
    kind = PAIRS[operation.code]
    found = to.input(operation, 0)
    for index in range(1, len(operation.inputs)):
        a, b = found, to.input(operation, index)
        if kind.startswith("logical"):
            a, b = to.cast(a, "bool"), to.cast(b, "bool")
        elif to.is_bool(a) or to.is_bool(b):
            a, b = to.cast(a, "int32"), to.cast(b, "int32")
        found = to.op(kind, x=a, y=b)
    return found


def _shifted_codes(to: Translation, operation: OnnxOperation) -> Any:
    """Stored codes plus a number, which stay codes."""
    for one, other in (operation.inputs, operation.inputs[::-1]):
        stored = to.held(one)
        if (
            isinstance(stored, StoredWeights)
            and other is not None
            and other.constant is not None
            and other.shape.elements == 1
        ):
            return stored.plus(float(other.constant.numpy().reshape(-1)[0]))
    return None


@translates("Div")
def quotient(to: Translation, operation: OnnxOperation, a: Any, b: Any) -> Any:
    if to.is_float(a):
        return to.op("real_div", x=a, y=b)
    signs = to.op("mul", x=to.op("sign", x=a), y=to.op("sign", x=b))  # ONNX's division of integers cuts towards zero
    return to.op("mul", x=to.op("floor_div", x=to.op("abs", x=a), y=to.op("abs", x=b)), y=signs)


@translates("Mod")
def remainder(to: Translation, operation: OnnxOperation, a: Any, b: Any) -> Any:
    if not operation.attrs.get("fmod"):
        return to.op("mod", x=a, y=b)
    rest = to.op("mod", x=to.op("abs", x=a), y=to.op("abs", x=b))
    return to.op("mul", x=rest, y=to.op("sign", x=a))


@translates("Neg")
def negative(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    return to.op("mul", x=x, y=np.float32(-1) if to.is_float(x) else np.int32(-1))


translates("Reciprocal")(lambda to, operation: to.op("real_div", x=np.float32(1), y=to.input(operation, 0)))
translates("Log")(lambda to, operation: to.op("log", x=to.input(operation, 0), epsilon=np.float32(0)))


@translates("Asinh")
def inverse_hyperbolic_sine(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    """sign(x) · log(|x| + √(x² + 1)), which loses no digits where x is far below zero."""
    size = to.op("abs", x=x)
    root = to.op("sqrt", x=to.op("add", x=to.op("mul", x=x, y=x), y=np.float32(1)))
    return to.op("mul", x=to.op("log", x=to.op("add", x=size, y=root), epsilon=np.float32(0)), y=to.op("sign", x=x))


@translates("Acosh")
def inverse_hyperbolic_cosine(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    root = to.op("sqrt", x=to.op("sub", x=to.op("mul", x=x, y=x), y=np.float32(1)))
    return to.op("log", x=to.op("add", x=x, y=root), epsilon=np.float32(0))


@translates(*WITH_ALPHA)
def with_alpha(to: Translation, operation: OnnxOperation) -> Any:
    kind, default = WITH_ALPHA[operation.code]
    return to.op(kind, x=to.input(operation, 0), alpha=np.float32(operation.attrs.get("alpha", default)))


@translates("Selu")
def scaled_elu(to: Translation, operation: OnnxOperation) -> Any:
    alpha, gamma = (operation.attrs.get(name, usual) for name, usual in (("alpha", SELU_ALPHA), ("gamma", SELU_SCALE)))
    return to.op("mul", x=to.op("elu", x=to.input(operation, 0), alpha=np.float32(alpha)), y=np.float32(gamma))


@translates("HardSigmoid")
def hard_sigmoid(to: Translation, operation: OnnxOperation) -> Any:
    alpha, beta = (np.float32(operation.attrs.get(*pair)) for pair in (("alpha", 0.2), ("beta", 0.5)))
    return to.op("sigmoid_hard", x=to.input(operation, 0), alpha=alpha, beta=beta)


@translates("PRelu")
def parametric_relu(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    below = to.op("mul", x=to.op("minimum", x=x, y=np.float32(0)), y=to.input(operation, 1))
    return to.op("add", x=to.op("relu", x=x), y=below)


@translates("Clip")
def clipped(to: Translation, operation: OnnxOperation) -> Any:
    x, low, high = to.input(operation, 0), to.optional(operation, 1), to.optional(operation, 2)
    known = [value is None or value.val is not None for value in (low, high)]
    if to.is_float(x) and all(known) and low is not None and high is not None:
        low, high = float(low.val), float(high.val)
        if (low, high) == (0.0, 6.0):
            return to.op("relu6", x=x)
        if low <= high:
            return to.op("clip", x=x, alpha=np.float32(low), beta=np.float32(high))
    x = x if low is None else to.op("maximum", x=x, y=low)
    return x if high is None else to.op("minimum", x=x, y=high)


@translates("Where")
def where(to: Translation, operation: OnnxOperation, condition: Any, a: Any, b: Any) -> Any:
    condition = to.cast(condition, "bool")
    return to.numbers("select", {"a": a, "b": b}, cond=condition)


@translates("IsNaN")
def is_no_number(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    return to.op("not_equal", x=x, y=x)


@translates("IsInf")
def is_infinite(to: Translation, operation: OnnxOperation) -> Any:
    return to.op("equal", x=to.op("abs", x=to.input(operation, 0)), y=np.float32(np.inf))


@translates("Cast")
def cast(to: Translation, operation: OnnxOperation) -> Any:
    (result,) = operation.outputs
    assert result is not None
    x = to.input(operation, 0)
    if result.dtype.name == "bool":
        return x if to.is_bool(x) else to.op("not_equal", x=x, y=np.float32(0) if to.is_float(x) else np.int32(0))
    if result.dtype.name == "string":
        raise to.unsupported("Core ML has no texts")
    return to.cast(x, "fp32" if result.dtype.is_floating else "int32")
