"""What ops that change variables compute, as nodes: the new values of their variables.

The formulas are those of the kernels (kernels/training/optimizers.py, kernels/state/variables.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.graph import AttrValue


class Nodes:
    """Arithmetic as nodes of one element type.

    Attributes:
        builder: where they are added.
        flags: the attributes of the op at work.
    """

    def __init__(self, builder: GraphBuilder, like: str, flags: Mapping[str, AttrValue]) -> None:
        self.builder, self.flags, self._dtype = builder, flags, builder.dtype(like).base

    def number(self, value: float) -> str:
        return self.builder.const(value, self._dtype)

    def add(self, *terms: str) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.builder.add("Add", total, term)
        return total

    def sub(self, a: str, b: str) -> str:
        return self.builder.add("Sub", a, b)

    def mul(self, *factors: str) -> str:
        product = factors[0]
        for factor in factors[1:]:
            product = self.builder.add("Mul", product, factor)
        return product

    def div(self, a: str, b: str) -> str:
        return self.builder.add("RealDiv", a, b)

    def sqrt(self, a: str) -> str:
        return self.builder.add("Sqrt", a)

    def rest(self, share: str) -> str:
        """1 - share."""
        return self.sub(self.number(1), share)

    def mean(self, mean: str, value: str, share: str) -> str:
        """A running mean: mean + (value - mean)·(1 - share)."""
        return self.add(mean, self.mul(self.sub(value, mean), self.rest(share)))


Rule: TypeAlias = "Callable[..., Sequence[str | None]]"
"""Takes Nodes and the op's inputs, with the values of its variables in their places; gives the new values of the
variables, which are the first inputs; None for one that stays."""


def scatter(op: str) -> Rule:
    """Rows of a variable: the indices come as int32 or int64, one axis more than the rows they name."""

    def rule(n: Nodes, var: str, indices: str, rows: str) -> list[str]:
        places = n.builder.add("ExpandDims", indices, n.builder.const(-1))
        return [n.builder.add(op, var, places, rows)]

    return rule


def gradient_descent(n: Nodes, var: str, lr: str, grad: str) -> list[str]:
    return [n.sub(var, n.mul(lr, grad))]


def momentum(n: Nodes, var: str, accum: str, lr: str, grad: str, momentum: str) -> list[str]:
    moved = n.add(n.mul(accum, momentum), grad)
    if n.flags.get("use_nesterov"):
        step = n.add(n.mul(grad, lr), n.mul(moved, momentum, lr))
    else:
        step = n.mul(lr, moved)
    return [n.sub(var, step), moved]


def keras_momentum(n: Nodes, var: str, accum: str, lr: str, grad: str, momentum: str) -> list[str]:
    moved = n.sub(n.mul(accum, momentum), n.mul(lr, grad))
    step = n.sub(n.mul(momentum, moved), n.mul(lr, grad)) if n.flags.get("use_nesterov") else moved
    return [n.add(var, step), moved]


def adagrad(n: Nodes, var: str, accum: str, lr: str, *epsilon_and_grad: str) -> list[str]:
    *epsilon, grad = epsilon_and_grad  # the first version has no epsilon
    total = n.add(accum, n.mul(grad, grad)) if n.flags.get("update_slots", True) else accum
    return [n.sub(var, n.div(n.mul(lr, grad), n.add(n.sqrt(total), *epsilon))), total]


def adam(
    n: Nodes, var: str, m: str, v: str, beta1_power: str, beta2_power: str, lr: str, beta1: str, beta2: str,
    epsilon: str, grad: str,
) -> list[str]:  # fmt: skip
    rate = n.div(n.mul(lr, n.sqrt(n.rest(beta2_power))), n.rest(beta1_power))
    first, second = n.mean(m, grad, beta1), n.mean(v, n.mul(grad, grad), beta2)
    ahead = n.add(n.mul(first, beta1), n.mul(n.rest(beta1), grad)) if n.flags.get("use_nesterov") else first
    return [n.sub(var, n.div(n.mul(ahead, rate), n.add(n.sqrt(second), epsilon))), first, second]


def rms_prop(
    n: Nodes, var: str, ms: str, mom: str, lr: str, rho: str, momentum: str, epsilon: str, grad: str
) -> list[str]:
    squares = n.mean(ms, n.mul(grad, grad), rho)
    moved = n.add(n.mul(mom, momentum), n.div(n.mul(grad, lr), n.sqrt(n.add(squares, epsilon))))
    return [n.sub(var, moved), squares, moved]


def centered_rms_prop(
    n: Nodes, var: str, mg: str, ms: str, mom: str, lr: str, rho: str, momentum: str, epsilon: str, grad: str
) -> list[str]:
    squares, mean = n.mean(ms, n.mul(grad, grad), rho), n.mean(mg, grad, rho)
    spread = n.add(n.sub(squares, n.mul(mean, mean)), epsilon)
    moved = n.add(n.mul(mom, momentum), n.div(n.mul(grad, lr), n.sqrt(spread)))
    return [n.sub(var, moved), mean, squares, moved]


def adadelta(
    n: Nodes, var: str, accum: str, accum_update: str, lr: str, rho: str, epsilon: str, grad: str
) -> list[str]:
    squares = n.add(n.mul(accum, rho), n.mul(grad, grad, n.rest(rho)))
    step = n.mul(n.div(n.sqrt(n.add(accum_update, epsilon)), n.sqrt(n.add(squares, epsilon))), grad)
    return [n.sub(var, n.mul(lr, step)), squares, n.add(n.mul(accum_update, rho), n.mul(step, step, n.rest(rho)))]


def ftrl(n: Nodes, var: str, accum: str, linear: str, grad: str, lr: str, l1: str, l2: str, lr_power: str) -> list[str]:
    total = n.add(accum, n.mul(grad, grad))
    power = n.builder.add("Neg", lr_power)
    grown, old = (n.builder.add("Pow", squares, power) for squares in (total, accum))
    if n.flags.get("multiply_linear_by_lr"):
        line = n.sub(n.add(linear, n.mul(grad, lr)), n.mul(n.sub(grown, old), var))
        least, below = n.mul(l1, lr), n.add(grown, n.mul(n.number(2), l2, lr))
    else:
        line = n.sub(n.add(linear, grad), n.mul(n.div(n.sub(grown, old), lr), var))
        least, below = l1, n.add(n.div(grown, lr), n.mul(n.number(2), l2))
    # sign(line)·max(|line| - l1, 0) is what is left of the linear term
    size = n.builder.add("Maximum", n.sub(n.builder.add("Abs", line), least), n.number(0))
    drawn = n.mul(n.builder.add("Sign", line), size)
    return [n.builder.add("Neg", n.div(drawn, below)), total, line]


_ASSIGNMENTS: dict[str, Rule] = {
    "Assign": lambda n, var, value: [value],
    "AssignAdd": lambda n, var, value: [n.add(var, value)],
    "AssignSub": lambda n, var, value: [n.sub(var, value)],
}
_SCATTERS: dict[str, Rule] = {f"Scatter{kind}": scatter(f"TensorScatter{kind}") for kind in ("Add", "Sub", "Update")}
_STEPS: dict[str, Rule] = {
    "GradientDescent": gradient_descent, "Momentum": momentum, "KerasMomentum": keras_momentum, "Adagrad": adagrad,
    "AdagradV2": adagrad, "Adam": adam, "RMSProp": rms_prop, "CenteredRMSProp": centered_rms_prop,
    "Adadelta": adadelta, "Ftrl": ftrl,
}  # fmt: skip
UPDATES: dict[str, Rule] = {
    **{f"{op}{end}": rule for op, rule in _ASSIGNMENTS.items() for end in ("", "VariableOp")},
    **{f"{kind}{op}": rule for op, rule in _SCATTERS.items() for kind in ("", "Resource")},
    **{f"{kind}Apply{step}": rule for step, rule in _STEPS.items() for kind in ("", "Resource")},
}
"""Not a trait: the table of the ops that change variables, with what they compute."""
