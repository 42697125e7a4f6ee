"""Gradients of functions of one tensor, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

from pocketgraph.differentiation.gradient_table import gradient, not_differentiable
from pocketgraph.differentiation.node_gradient import NodeGradient

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


gradient(*DERIVATIVES)(lambda op: op.mul(op.grad, DERIVATIVES[op.node.op](op)))
gradient(*INVERSE_DERIVATIVES)(lambda op: op.add("RealDiv", op.grad, INVERSE_DERIVATIVES[op.node.op](op)))
gradient("Neg")(lambda op: op.add("Neg", op.grad))
gradient("Acos")(lambda op: op.add("Neg", op.add("RealDiv", op.grad, _cathetus(op))))


@gradient("Reciprocal", "Inv", "Sqrt", "Rsqrt", "Tanh", "Sigmoid")
def by_its_result(op: NodeGradient) -> str:
    """TensorFlow has an op for each that takes the result and its gradient."""
    return op.add(f"{op.node.op}Grad", op.output(), op.grad)


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
