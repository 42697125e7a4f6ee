"""Gradients of functions of one tensor, element by element."""

from __future__ import annotations

import math

from pocketgraph.differentiation.backward import Backward
from pocketgraph.differentiation.registry import gradient, not_differentiable

not_differentiable("Floor", "Ceil", "Round", "Rint", "Sign", "IsNan", "IsInf", "IsFinite", "LogicalNot")


@gradient("Neg")
def negated(op: Backward) -> str:
    return op.add("Neg", op.grad)


@gradient("Abs")
def absolute(op: Backward) -> str:
    return op.mul(op.grad, op.add("Sign", op.inputs[0]))


@gradient("Square")
def square(op: Backward) -> str:
    return op.mul(op.grad, op.mul(op.number(2), op.inputs[0]))


@gradient("Reciprocal", "Inv", "Sqrt", "Rsqrt", "Tanh", "Sigmoid")
def by_its_result(op: Backward) -> str:
    """TensorFlow has an op for each that takes the result and its gradient."""
    return op.add(f"{op.node.op}Grad", op.output(), op.grad)


@gradient("Exp")
def exponential(op: Backward) -> str:
    return op.mul(op.grad, op.output())


@gradient("Expm1")
def exponential_minus_one(op: Backward) -> str:
    return op.mul(op.grad, op.add("Exp", op.inputs[0]))


@gradient("Log")
def logarithm(op: Backward) -> str:
    return op.mul(op.grad, op.add("Reciprocal", op.inputs[0]))


@gradient("Log1p")
def logarithm_of_one_more(op: Backward) -> str:
    return op.mul(op.grad, op.add("Reciprocal", op.add("Add", op.number(1), op.inputs[0])))


@gradient("Sin")
def sine(op: Backward) -> str:
    return op.mul(op.grad, op.add("Cos", op.inputs[0]))


@gradient("Cos")
def cosine(op: Backward) -> str:
    return op.mul(op.grad, op.add("Neg", op.add("Sin", op.inputs[0])))


@gradient("Tan")
def tangent(op: Backward) -> str:
    return op.mul(op.grad, op.add("Square", op.add("Reciprocal", op.add("Cos", op.inputs[0]))))


@gradient("Sinh")
def hyperbolic_sine(op: Backward) -> str:
    return op.mul(op.grad, op.add("Cosh", op.inputs[0]))


@gradient("Cosh")
def hyperbolic_cosine(op: Backward) -> str:
    return op.mul(op.grad, op.add("Sinh", op.inputs[0]))


@gradient("Asinh")
def inverse_hyperbolic_sine(op: Backward) -> str:
    return op.add("RealDiv", op.grad, op.add("Cosh", op.output()))


@gradient("Acosh")
def inverse_hyperbolic_cosine(op: Backward) -> str:
    return op.add("RealDiv", op.grad, op.add("Sinh", op.output()))


@gradient("Atanh")
def inverse_hyperbolic_tangent(op: Backward) -> str:
    return op.add("RealDiv", op.grad, op.add("Sub", op.number(1), op.add("Square", op.inputs[0])))


@gradient("Asin")
def inverse_sine(op: Backward) -> str:
    return op.add("RealDiv", op.grad, _cathetus(op))


@gradient("Acos")
def inverse_cosine(op: Backward) -> str:
    return op.add("Neg", op.add("RealDiv", op.grad, _cathetus(op)))


def _cathetus(op: Backward) -> str:
    return op.add("Sqrt", op.add("Sub", op.number(1), op.add("Square", op.inputs[0])))


@gradient("Atan")
def inverse_tangent(op: Backward) -> str:
    return op.add("RealDiv", op.grad, op.add("Add", op.number(1), op.add("Square", op.inputs[0])))


@gradient("Erf")
def error_function(op: Backward) -> str:
    return op.mul(op.grad, op.mul(op.number(2 / math.sqrt(math.pi)), _bell(op)))


@gradient("Erfc")
def complementary_error_function(op: Backward) -> str:
    return op.mul(op.grad, op.mul(op.number(-2 / math.sqrt(math.pi)), _bell(op)))


def _bell(op: Backward) -> str:
    return op.add("Exp", op.add("Neg", op.add("Square", op.inputs[0])))


@gradient("Lgamma")
def log_gamma(op: Backward) -> str:
    return op.mul(op.grad, op.add("Digamma", op.inputs[0]))


@gradient("Digamma")
def digamma(op: Backward) -> str:
    return op.mul(op.grad, op.add("Polygamma", op.number(1), op.inputs[0]))


@gradient("TanhGrad")
def tanh_grad(op: Backward) -> tuple[str, str]:
    """Of ``dy (1 - y²)``, by y and by dy."""
    y, dy = op.inputs
    by_y = op.mul(op.number(-2), op.mul(op.grad, op.mul(y, dy)))
    return by_y, op.add("TanhGrad", y, op.grad)


@gradient("SigmoidGrad")
def sigmoid_grad(op: Backward) -> tuple[str, str]:
    """Of ``dy y (1 - y)``, by y and by dy."""
    y, dy = op.inputs
    slope = op.add("Sub", op.number(1), op.mul(op.number(2), y))
    return op.mul(op.mul(op.grad, dy), slope), op.add("SigmoidGrad", y, op.grad)


@gradient("Cast")
def cast(op: Backward) -> str | None:
    source = op.builder.dtype(op.inputs[0])
    return op.cast(op.grad, source) if source.is_floating else None
