"""The steps of optimizers: how a variable moves along its gradient."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.state.variables import Variable, change

Array = np.ndarray[Any, Any]


def gradient_descent(var: Variable, alpha: Array, delta: Array) -> None:
    """var -= alpha · delta"""
    change(var, lambda now: now - alpha * delta)


def momentum(
    var: Variable, accum: Variable, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool = False
) -> None:
    """accum = momentum · accum + grad; var -= lr · accum (with Nesterov: lr · grad + lr · momentum · accum)"""
    change(accum, lambda now: momentum * now + grad)
    step = accum.read()
    if use_nesterov:
        change(var, lambda now: now - (grad * lr + step * momentum * lr))
    else:
        change(var, lambda now: now - lr * step)


def adagrad(var: Variable, accum: Variable, lr: Array, grad: Array, *, update_slots: bool = True) -> None:
    """accum += grad²; var -= lr · grad / √accum"""
    if update_slots:
        change(accum, lambda now: now + grad * grad)
    change(var, lambda now: now - lr * grad / np.sqrt(accum.read()))


def adam(
    var: Variable, m: Variable, v: Variable, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array,
    beta2: Array, epsilon: Array, grad: Array, *, use_nesterov: bool = False,
) -> None:  # fmt: skip
    """m and v are running means of grad and grad²; var -= lr·√(1-β₂ᵗ)/(1-β₁ᵗ) · m/(√v+ε) (Kingma and Ba, 2015)"""
    one = grad.dtype.type(1)
    alpha = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    change(m, lambda now: now + (grad - now) * (one - beta1))
    change(v, lambda now: now + (grad * grad - now) * (one - beta2))
    first = m.read()
    if use_nesterov:
        first = first * beta1 + (one - beta1) * grad
    change(var, lambda now: now - first * alpha / (np.sqrt(v.read()) + epsilon))


def rms_prop(
    var: Variable, ms: Variable, mom: Variable, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> None:
    """ms is a running mean of grad²; mom = momentum·mom + lr·grad/√(ms+ε); var -= mom"""
    one = grad.dtype.type(1)
    change(ms, lambda now: now + (grad * grad - now) * (one - rho))
    change(mom, lambda now: momentum * now + grad * lr / np.sqrt(ms.read() + epsilon))
    change(var, lambda now: now - mom.read())


def adadelta(
    var: Variable, accum: Variable, accum_update: Variable, lr: Array, rho: Array, epsilon: Array, grad: Array
) -> None:
    """The step is √(accum_update+ε)/√(accum+ε) · grad, both running means (Zeiler, 2012)"""
    one = grad.dtype.type(1)
    change(accum, lambda now: now * rho + grad * grad * (one - rho))
    update = np.sqrt(accum_update.read() + epsilon) / np.sqrt(accum.read() + epsilon) * grad
    change(accum_update, lambda now: now * rho + update * update * (one - rho))
    change(var, lambda now: now - lr * update)


def offer(op: str, on_resource: bool, step: Callable[..., None]) -> None:
    """Registers ``step`` as the kernel of an op; its keyword-only parameters are the op's attributes.

    Args:
        op: the op type.
        on_resource: whether its variables are resources; then it gives nothing back, else the variable.
        step: takes the op's inputs, the variable first, and changes it.
    """

    def run(*inputs: Any, **attributes: Any) -> Any:
        step(*inputs, **attributes)
        return () if on_resource else inputs[0]

    options = [p for p in inspect.signature(step).parameters.values() if p.kind is p.KEYWORD_ONLY]
    inputs = inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)
    run.__signature__ = inspect.Signature([inputs, *options])  # type: ignore[attr-defined]
    kernel(op)(run)


def offer_both(ending: str, step: Callable[..., None]) -> None:
    """Both kinds of variable: the reference op ``ending`` and the resource op ``Resource`` + ``ending``."""
    offer(ending, False, step)
    offer(f"Resource{ending}", True, step)


STEPS: dict[str, Callable[..., None]] = {
    "GradientDescent": gradient_descent,
    "Momentum": momentum,
    "Adagrad": adagrad,
    "Adam": adam,
    "RMSProp": rms_prop,
    "Adadelta": adadelta,
}
"""By optimizer: what ApplyX and ResourceApplyX do to the variable and its slots."""

for _name, _step in STEPS.items():
    offer_both(f"Apply{_name}", _step)
