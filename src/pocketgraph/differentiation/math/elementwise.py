"""Gradients of functions, element by element: of one tensor, and of two, which broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient

Pair = Sequence[str | None]

not_differentiable(
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "ApproximateEqual", "LogicalAnd", "LogicalOr",
    "FloorDiv", "TruncateDiv", "ArgMax", "ArgMin", "Bucketize", "Range", "LinSpace", "InTopK", "InTopKV2",
)  # fmt: skip


gradient("Add", "AddV2")(lambda op: op.unbroadcast(op.grad, op.grad))
gradient("Sub")(lambda op: op.unbroadcast(op.grad, op.add("Neg", op.grad)))


@gradient("Mul")
def product(op: NodeGradient) -> Pair:
    x, y = map(op.conj, op.inputs)
    return op.unbroadcast(op.mul(op.grad, y), op.mul(x, op.grad))


@gradient("MulNoNan")
def product_without_nan(op: NodeGradient) -> Pair:
    x, y = op.inputs
    return op.unbroadcast(op.add("MulNoNan", op.grad, y), op.add("MulNoNan", x, op.grad))


@gradient("Div", "RealDiv", "DivNoNan")
def quotient(op: NodeGradient) -> Pair:
    x, y = map(op.conj, op.inputs)
    divide = "DivNoNan" if op.node.op == "DivNoNan" else "RealDiv"
    by_y = op.mul(op.grad, op.add(divide, op.add(divide, op.add("Neg", x), y), y))
    return op.unbroadcast(op.add(divide, op.grad, y), by_y)


@gradient("FloorMod", "Mod")
def remainder(op: NodeGradient) -> Pair:
    """Of ``x - y floor(x / y)`` (``Mod`` rounds towards zero)."""
    x, y = op.inputs
    whole = op.add("FloorDiv" if op.node.op == "FloorMod" else "TruncateDiv", x, y)
    return op.unbroadcast(op.grad, op.mul(op.grad, op.add("Neg", whole)))


@gradient("SquaredDifference")
def squared_difference(op: NodeGradient) -> Pair:
    x, y = op.inputs
    by_x = op.mul(op.mul(op.number(2), op.grad), op.add("Sub", x, y))
    return op.unbroadcast(by_x, op.add("Neg", by_x))


@gradient("Pow")
def power(op: NodeGradient) -> Pair:
    """By the exponent it is 0 where the base is not positive; of complex numbers, where it is 0."""
    x, y, z = map(op.conj, (*op.inputs, op.output()))
    by_x = op.mul(op.mul(op.grad, y), op.add("Pow", x, op.add("Sub", y, op.number(1))))
    is_positive = op.add("NotEqual" if op.dtype.is_complex else "Greater", x, op.number(0))
    ones = op.add("OnesLike", x)
    log = op.add("Select", is_positive, op.add("Log", op.add("Select", is_positive, x, ones)), op.zeros(x))
    return op.unbroadcast(by_x, op.mul(op.mul(op.grad, z), log))


@gradient("Maximum", "Minimum")
def extreme(op: NodeGradient) -> Pair:
    x, y = op.inputs
    is_first = op.add("GreaterEqual" if op.node.op == "Maximum" else "LessEqual", x, y)
    zeros = op.zeros(op.grad)
    return op.unbroadcast(op.add("Select", is_first, op.grad, zeros), op.add("Select", is_first, zeros, op.grad))


@gradient("Atan2")
def angle(op: NodeGradient) -> Pair:
    y, x = op.inputs
    share = op.add("RealDiv", op.grad, op.add("Add", op.add("Square", x), op.add("Square", y)))
    return op.unbroadcast(op.mul(x, share), op.mul(op.add("Neg", y), share))


@gradient("Xdivy")
def quotient_that_is_zero(op: NodeGradient) -> Pair:
    x, y = op.inputs
    is_used = op.cast(op.add("NotEqual", x, op.number(0), incompatible_shape_error=True), op.dtype)
    by_x = op.add("Xdivy", is_used, y)
    by_y = op.add("Xdivy", op.add("Neg", x), op.add("Square", y))
    return op.unbroadcast(op.mul(by_x, op.grad), op.mul(by_y, op.grad))


@gradient("Xlogy", "Xlog1py")
def product_with_logarithm(op: NodeGradient) -> Pair:
    x, y = op.inputs
    is_used = op.cast(op.add("NotEqual", x, op.number(0), incompatible_shape_error=True), op.dtype)
    of = y if op.node.op == "Xlogy" else op.add("Add", y, op.number(1))
    return op.unbroadcast(op.mul(op.add(op.node.op, is_used, y), op.grad), op.mul(op.add("Xdivy", x, of), op.grad))


gradient("NextAfter")(lambda op: op.unbroadcast(op.grad, op.zeros(op.grad)))


@gradient("Select")
def select(op: NodeGradient) -> Pair:
    zeros = op.zeros(op.grad)
    condition = op.inputs[0]
    return None, op.add("Select", condition, op.grad, zeros), op.add("Select", condition, zeros, op.grad)


@gradient("SelectV2")
def broadcasting_select(op: NodeGradient) -> Pair:
    zeros = op.number(0)
    condition, x, y = op.inputs
    chosen = op.add("SelectV2", condition, op.grad, zeros), op.add("SelectV2", condition, zeros, op.grad)
    shape = op.shape(op.output())
    summed = []
    for ref, part in zip((x, y), chosen, strict=True):
        if op.static(ref).is_known and op.static(ref) == op.static(op.output()):
            summed.append(part)
            continue
        own = op.shape(ref)
        summed.append(op.add("Reshape", op.add("Sum", part, op.add("BroadcastGradientArgs", own, shape)), own))
    return None, *summed


@gradient("ClipByValue")
def clip(op: NodeGradient) -> Pair:
    """By the value only where it lies between the limits, by a limit where it took the value's place."""
    x, low, high = op.inputs
    zeros = op.zeros(op.grad)
    below, above = op.add("Less", x, low), op.add("Greater", x, high)
    inside = op.add("Select", op.add("LogicalOr", below, above), zeros, op.grad)
    limits = []
    for limit, mask in ((low, below), (high, above)):
        axes = op.add("BroadcastGradientArgs", op.shape(limit), op.shape(x))
        limits.append(op.add("Reshape", op.add("Sum", op.add("Select", mask, op.grad, zeros), axes), op.shape(limit)))
    return inside, *limits


gradient("AddN", "AccumulateNV2")(lambda op: [op.grad] * len(op.inputs))


not_differentiable("Floor", "Ceil", "Round", "Rint", "Sign", "IsNan", "IsInf", "IsFinite", "LogicalNot")


def _cathetus(op: NodeGradient) -> str:
    return op.add("Sqrt", op.add("Sub", op.number(1), op.add("Square", op.inputs[0])))


def _bell(op: NodeGradient) -> str:
    return op.add("Exp", op.add("Neg", op.add("Square", op.inputs[0])))


DERIVATIVES: dict[str, Callable[[NodeGradient], str]] = {
    "Abs": lambda op: op.add("Sign", op.inputs[0]),
    "Square": lambda op: op.mul(op.number(2), op.inputs[0]),
    "Exp": lambda op: op.output(),
    "Expm1": lambda op: op.add("Exp", op.inputs[0]),
    "Log": lambda op: op.add("Reciprocal", op.inputs[0]),
    "Log1p": lambda op: op.add("Reciprocal", op.add("Add", op.number(1), op.inputs[0])),
    "Sin": lambda op: op.add("Cos", op.inputs[0]),
    "Cos": lambda op: op.add("Neg", op.add("Sin", op.inputs[0])),
    "Tan": lambda op: op.add("Square", op.add("Reciprocal", op.add("Cos", op.inputs[0]))),
    "Sinh": lambda op: op.add("Cosh", op.inputs[0]),
    "Cosh": lambda op: op.add("Sinh", op.inputs[0]),
    "Erf": lambda op: op.mul(op.number(2 / math.sqrt(math.pi)), _bell(op)),
    "Erfc": lambda op: op.mul(op.number(-2 / math.sqrt(math.pi)), _bell(op)),
    "Lgamma": lambda op: op.add("Digamma", op.inputs[0]),
    "Digamma": lambda op: op.add("Polygamma", op.number(1), op.inputs[0]),
}
INVERSE_DERIVATIVES: dict[str, Callable[[NodeGradient], str]] = {
    "Asinh": lambda op: op.add("Cosh", op.output()),
    "Acosh": lambda op: op.add("Sinh", op.output()),
    "Atanh": lambda op: op.add("Sub", op.number(1), op.add("Square", op.inputs[0])),
    "Asin": _cathetus,
    "Atan": lambda op: op.add("Add", op.number(1), op.add("Square", op.inputs[0])),
}
"""One divided by the derivative."""


gradient(*DERIVATIVES)(lambda op: op.mul(op.grad, op.conj(DERIVATIVES[op.node.op](op))))
gradient(*INVERSE_DERIVATIVES)(lambda op: op.add("RealDiv", op.grad, op.conj(INVERSE_DERIVATIVES[op.node.op](op))))
gradient("Neg")(lambda op: op.add("Neg", op.grad))
gradient("Acos")(lambda op: op.add("Neg", op.add("RealDiv", op.grad, op.conj(_cathetus(op)))))


@gradient("Reciprocal", "Inv", "Sqrt", "Rsqrt", "Tanh", "Sigmoid")
def by_its_result(op: NodeGradient) -> str:
    """TensorFlow has an op for each that takes the result and its gradient; all but two conjugate the result."""
    result = op.conj(op.output()) if op.node.op in ("Tanh", "Sigmoid") else op.output()
    return op.add(f"{op.node.op}Grad", result, op.grad)


@gradient("TanhGrad")
def tanh_grad(op: NodeGradient) -> tuple[str, str]:
    """Of ``dy (1 - y²)``, by y and by dy."""
    y, dy = op.inputs
    by_y = op.mul(op.number(-2), op.mul(op.grad, op.mul(y, dy)))
    return by_y, op.add("TanhGrad", y, op.grad)


@gradient("SigmoidGrad")
def sigmoid_grad(op: NodeGradient) -> tuple[str, str]:
    """Of ``dy y (1 - y)``, by y and by dy."""
    y, dy = op.inputs
    slope = op.add("Sub", op.number(1), op.mul(op.number(2), y))
    return op.mul(op.mul(op.grad, dy), slope), op.add("SigmoidGrad", y, op.grad)


@gradient("ReciprocalGrad", "InvGrad")
def reciprocal_grad(op: NodeGradient) -> tuple[str, str]:
    """Of ``-dy y²``, by y and by dy."""
    y, dy = op.inputs
    return op.mul(op.number(-2), op.mul(op.grad, op.mul(y, dy))), op.add("ReciprocalGrad", y, op.grad)


@gradient("SqrtGrad")
def sqrt_grad(op: NodeGradient) -> tuple[str, str]:
    """Of ``dy / (2 y)``, by y and by dy; 0 where the gradient is."""
    share = op.add("Xdivy", op.grad, op.inputs[0])
    return op.add("Neg", op.add("MulNoNan", op.output(), share)), op.mul(op.number(0.5), share)


@gradient("RsqrtGrad")
def rsqrt_grad(op: NodeGradient) -> tuple[str, str]:
    """Of ``-dy y³ / 2``, by y and by dy."""
    y, dy = op.inputs
    by_y = op.mul(op.mul(op.number(-1.5), op.mul(op.grad, dy)), op.add("Square", y))
    return by_y, op.add("RsqrtGrad", y, op.grad)


@gradient("Cast")
def cast(op: NodeGradient) -> str | None:
    source = op.builder.dtype(op.inputs[0])
    return op.cast(op.grad, source) if source.is_floating else None
