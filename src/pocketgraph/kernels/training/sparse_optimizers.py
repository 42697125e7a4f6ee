"""Optimizer steps for some rows of a variable: SparseApply… and ResourceSparseApply….

Each row of the gradient moves the row of the variable that its index names, and the same row of each slot. A row that
is named several times takes several steps, one after the other, as in TensorFlow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.state.variables import Variable, change
from pocketgraph.kernels.training import optimizers

Step = Callable[..., None]


def turns(indices: Array) -> Iterator[Array]:
    """The places in ``indices`` in turns: the first of each index, then the second ones, and so on."""
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if ordered.size else np.zeros(0, np.int64)
    run = np.repeat(starts, np.diff(np.append(starts, ordered.size)))
    turn = np.empty(indices.size, np.int64)
    turn[order] = np.arange(indices.size) - run
    for number in range(int(turn.max(initial=-1)) + 1):
        yield np.flatnonzero(turn == number)


def rows_of(variables: list[Variable], grad: Array, indices: Array) -> None:
    """Checks that the gradient's rows fit the variables.

    Raises:
        RunError: indices are no vector or point outside, or a shape differs.
    """
    shape = variables[0].read().shape
    for slot in variables[1:]:
        if slot.read().shape != shape:
            raise RunError(
                f"'{slot.name}' has the shape {list(slot.read().shape)}, the variable '{variables[0].name}' "
                f"{list(shape)}"
            )
    if not shape:
        raise RunError("var must be at least 1 dimensional", where=f"variable '{variables[0].name}'")
    if indices.ndim != 1:
        raise RunError(f"indices must be one-dimensional, not of shape {list(indices.shape)}")
    if grad.shape != (indices.size, *shape[1:]):
        raise RunError(
            f"grad has the shape {list(grad.shape)}, {indices.size} rows of a variable of shape {list(shape)} ask for "
            f"{[indices.size, *shape[1:]]}"
        )
    wrong = indices[(indices < 0) | (indices >= shape[0])]
    if wrong.size:
        raise RunError(
            f"Index {int(wrong[0])} is out of range: the variable has {shape[0]} rows",
            where=f"variable '{variables[0].name}'",
        )


def sparsely(step: Step, inputs: tuple[Any, ...], order: tuple[int, ...], **options: Any) -> None:
    """Takes a dense optimizer's step on the rows that the indices name.

    Args:
        step: the dense step.
        inputs: of the sparse op; its variables come first, a vector of indices is among the rest.
        order: see ``places``.
        options: attributes of the step.

    Raises:
        RunError: the rows do not fit.
    """
    count = sum(isinstance(value, Variable) for value in inputs)
    variables: list[Variable] = list(inputs[:count])
    grad_at, indices_at = order[-2:]
    grad, indices = np.asarray(inputs[grad_at]), np.asarray(inputs[indices_at])
    with variables[0].lock:
        rows_of(variables, grad, indices)
        whole = [variable.read().copy() for variable in variables]
        for places in turns(indices):
            rows = indices[places]
            parts = []
            for variable, values in zip(variables, whole, strict=True):
                part = Variable(variable.name, variable.dtype)
                part.assign(values[rows])
                parts.append(part)
            arguments = [
                parts[at] if at < count else grad[places] if at == grad_at else inputs[at] for at in order[:-2]
            ]
            step(*arguments, **options)
            for values, part in zip(whole, parts, strict=True):
                values[rows] = part.read()
        for variable, values in zip(variables, whole, strict=True):
            variable.assign(values)


def rms_prop(
    var: Variable, ms: Variable, mom: Variable, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> None:
    """The dense step, but a mean of grad² that has become infinite stays so and moves nothing, as in TensorFlow"""
    one = grad.dtype.type(1)
    change(ms, lambda now: now * rho + grad * grad * (one - rho))
    change(mom, lambda now: momentum * now + grad * lr / np.sqrt(ms.read() + epsilon))
    change(var, lambda now: now - mom.read())


def centered_rms_prop(
    var: Variable, mg: Variable, ms: Variable, mom: Variable, lr: Array, rho: Array, momentum: Array,
    epsilon: Array, grad: Array,
) -> None:  # fmt: skip
    """Likewise, with the variance of the gradient"""
    one = grad.dtype.type(1)
    change(ms, lambda now: now * rho + grad * grad * (one - rho))
    change(mg, lambda now: now * rho + grad * (one - rho))
    spread = ms.read() - mg.read() * mg.read() + epsilon
    change(mom, lambda now: lr * grad / np.sqrt(spread) + now * momentum)
    change(var, lambda now: now - mom.read())


def sparse_ftrl(step: Step) -> Step:
    """The dense step, but a linear term that is NaN makes the variable NaN, and what TensorFlow checks here alone."""

    @wraps(step)
    def run(var: Variable, accum: Variable, linear: Variable, *others: Array, **options: Any) -> None:
        _, lr, *strengths, power = others
        optimizers.check_strengths(lr, *strengths, power=power, may_rest=bool(options.get("multiply_linear_by_lr")))
        step(var, accum, linear, *others, **options)
        total = linear.read()
        change(var, lambda now: np.where(np.isnan(total), total, now))

    return run


STEPS: dict[str, tuple[Step, str]] = {
    "Adadelta": (optimizers.adadelta, "var accum accum_update lr rho epsilon grad"),
    "AdagradDA": (optimizers.adagrad_da, "var total squares grad lr l1 l2 step"),
    "CenteredRMSProp": (centered_rms_prop, "var mg ms mom lr rho momentum epsilon grad"),
    "ProximalAdagrad": (optimizers.proximal_adagrad, "var accum lr l1 l2 grad"),
    "ProximalGradientDescent": (optimizers.proximal_gradient_descent, "var alpha l1 l2 grad"),
    "RMSProp": (rms_prop, "var ms mom lr rho momentum epsilon grad"),
    "Momentum": (optimizers.momentum, "var accum lr grad momentum"),
    "Adagrad": (optimizers.adagrad, "var accum lr grad"),
    "AdagradV2": (optimizers.adagrad_v2, "var accum lr epsilon grad"),
    "Ftrl": (sparse_ftrl(optimizers.ftrl), "var accum linear grad lr l1 l2 lr_power"),
    "FtrlV2": (sparse_ftrl(optimizers.ftrl_v2), "var accum linear grad lr l1 l2 l2_shrinkage lr_power"),
    "KerasMomentum": (optimizers.keras_momentum, "var accum lr grad momentum"),
}
"""By optimizer: the dense step, and its arguments in order. The sparse op has indices behind ``grad``."""


def places(arguments: str) -> tuple[int, ...]:
    """Where each argument of a dense step is among the sparse op's inputs; then where grad and indices are."""
    names = arguments.split()
    grad = names.index("grad")
    return (*(at + (at > grad) for at in range(len(names))), grad, grad + 1)


def sparse_step(step: Step, order: tuple[int, ...]) -> Step:
    """A dense step with its keyword-only parameters, on rows."""

    def run(*inputs: Any, **options: Any) -> None:
        sparsely(step, inputs, order, **options)

    options = [p for p in inspect.signature(step).parameters.values() if p.kind is p.KEYWORD_ONLY]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run


for _name, (_step, _arguments) in STEPS.items():
    if _name != "KerasMomentum":  # of this one there is no reference op
        optimizers.offer(f"SparseApply{_name}", False, sparse_step(_step, places(_arguments)))
    optimizers.offer(f"ResourceSparseApply{_name}", True, sparse_step(_step, places(_arguments)))
