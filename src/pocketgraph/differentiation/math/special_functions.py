"""Gradients of special functions: Bessel, error, Fresnel and gamma functions, and what belongs to them.

The derivatives are those of Abramowitz and Stegun (6.4, 7.2, 9.1, 9.6), as TensorFlow's math_grad.py has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient

Pair = Sequence[str | None]


def _of_order_one(below: str) -> Callable[[NodeGradient], str]:
    """The function of order 0 less the result over x; at 0 that is one half (TensorFlow has 1 there for BesselI1)."""

    def derivative(op: NodeGradient) -> str:
        slope = op.add("Sub", op.add(below, op.inputs[0]), _over_x(op, op.output()))
        return _where(op, 0, op.number(0.5), slope)

    return derivative


def _over_x(op: NodeGradient, numerator: str) -> str:
    return op.add("RealDiv", numerator, op.inputs[0])


def _where(op: NodeGradient, x: float, there: str, elsewhere: str) -> str:
    return op.add("SelectV2", op.add("Equal", op.inputs[0], op.number(x)), there, elsewhere)


def _falling(name: str) -> Callable[[NodeGradient], str]:
    return lambda op: op.add("Neg", op.add(name, op.inputs[0]))


def _signed_result(op: NodeGradient) -> str:
    return op.mul(op.add("Sign", op.inputs[0]), op.output())


def _bessel_i1e(op: NodeGradient) -> str:
    slope = op.add(
        "Sub", op.add("BesselI0e", op.inputs[0]), op.add("Add", _signed_result(op), _over_x(op, op.output()))
    )
    return _where(op, 0, op.number(0.5), slope)


def _quarter_turns(name: str) -> Callable[[NodeGradient], str]:
    return lambda op: op.add(name, op.mul(op.number(math.pi / 2), op.add("Square", op.inputs[0])))


def _exp_of_square(factor: float, scale: float) -> Callable[[NodeGradient], str]:
    """``factor * exp(scale * y²)`` of the result y."""
    return lambda op: op.mul(op.number(factor), op.add("Exp", op.mul(op.number(scale), op.add("Square", op.output()))))


def _spence(op: NodeGradient) -> str:
    slope = op.add("RealDiv", op.add("Log", op.inputs[0]), op.add("Sub", op.number(1), op.inputs[0]))
    return _where(op, 1, op.number(-1), slope)


DERIVATIVES: dict[str, Callable[[NodeGradient], str]] = {
    "BesselI0": lambda op: op.add("BesselI1", op.inputs[0]),
    "BesselI0e": lambda op: op.add("Sub", op.add("BesselI1e", op.inputs[0]), _signed_result(op)),
    "BesselI1": _of_order_one("BesselI0"),
    "BesselI1e": _bessel_i1e,
    "BesselJ0": _falling("BesselJ1"),
    "BesselJ1": _of_order_one("BesselJ0"),
    "BesselY0": _falling("BesselY1"),
    "BesselY1": lambda op: op.add("Sub", op.add("BesselY0", op.inputs[0]), _over_x(op, op.output())),
    "BesselK0": _falling("BesselK1"),
    "BesselK0e": lambda op: op.add("Sub", op.output(), op.add("BesselK1e", op.inputs[0])),
    "BesselK1": lambda op: op.add("Sub", _falling("BesselK0")(op), _over_x(op, op.output())),
    "BesselK1e": lambda op: op.add(
        "Sub", op.add("Sub", op.output(), _over_x(op, op.output())), op.add("BesselK0e", op.inputs[0])
    ),
    "Dawsn": lambda op: op.add("Sub", op.number(1), op.mul(op.number(2), op.mul(op.inputs[0], op.output()))),
    "Expint": lambda op: _over_x(op, op.add("Exp", op.inputs[0])),
    "FresnelCos": _quarter_turns("Cos"),
    "FresnelSin": _quarter_turns("Sin"),
    "Spence": _spence,
    "Erfinv": _exp_of_square(math.sqrt(math.pi) / 2, 1),
    "Ndtri": _exp_of_square(math.sqrt(2 * math.pi), 0.5),
}
gradient(*DERIVATIVES)(lambda op: op.mul(op.grad, DERIVATIVES[op.node.op](op)))


@gradient("Igamma", "Igammac")
def incomplete_gamma(op: NodeGradient) -> Pair:
    """Of Igamma, and of 1 less it; by x it is ``exp(-x) x^(a-1) / Γ(a)``, taken of logarithms, as Γ grows fast."""
    a, x = op.inputs
    power = op.mul(op.add("Sub", a, op.number(1)), op.add("Log", x))
    by_x = op.add("Exp", op.add("Sub", op.add("Sub", power, x), op.add("Lgamma", a)))
    grad = op.grad if op.node.op == "Igamma" else op.add("Neg", op.grad)
    return op.unbroadcast(op.mul(grad, op.add("IgammaGradA", a, x)), op.mul(grad, by_x))


@gradient("Betainc")
def incomplete_beta(op: NodeGradient) -> Pair:
    """By x only, as in TensorFlow: ``x^(a-1) (1-x)^(b-1) / B(a, b)``."""
    a, b, x = op.inputs
    one = op.number(1)
    powers = op.add(
        "Add", op.add("Xlog1py", op.add("Sub", b, one), op.add("Neg", x)), op.add("Xlogy", op.add("Sub", a, one), x)
    )
    both = op.add("Sub", op.add("Add", op.add("Lgamma", a), op.add("Lgamma", b)), op.add("Lgamma", op.add("Add", a, b)))
    by_x = op.mul(op.grad, op.add("Exp", op.add("Sub", powers, both)))
    own = op.shape(x)
    axes = op.add("BroadcastGradientArgs", own, op.shape(op.output()))
    return None, None, op.add("Reshape", op.add("Sum", by_x, axes), own)


@gradient("Polygamma")
def polygamma(op: NodeGradient) -> Pair:
    """By the second argument only, as in TensorFlow."""
    n, x = op.inputs
    return op.unbroadcast(None, op.mul(op.grad, op.add("Polygamma", op.add("Add", n, op.number(1)), x)))


@gradient("Zeta")
def zeta(op: NodeGradient) -> Pair:
    """By the second argument only, as in TensorFlow."""
    x, q = op.inputs
    by_q = op.add("Neg", op.mul(x, op.add("Zeta", op.add("Add", x, op.number(1)), q)))
    return op.unbroadcast(None, op.mul(op.grad, by_q))
