"""The steps of optimizers: how a variable moves along its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.state import Variable, change

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


def _register(name: str, step: Callable[..., None], **attributes: Any) -> None:
    """Both kinds of variable: the reference op gives the variable back, the resource op nothing."""
    if "use_nesterov" in attributes:

        @kernel(f"Apply{name}")
        def apply_nesterov(var: Variable, *values: Any, use_nesterov: bool = False) -> Variable:
            step(var, *values, use_nesterov=use_nesterov)
            return var

        @kernel(f"ResourceApply{name}")
        def resource_apply_nesterov(var: Variable, *values: Any, use_nesterov: bool = False) -> tuple[()]:
            step(var, *values, use_nesterov=use_nesterov)
            return ()

        return

    @kernel(f"Apply{name}")
    def apply(var: Variable, *values: Any) -> Variable:
        step(var, *values)
        return var

    @kernel(f"ResourceApply{name}")
    def resource_apply(var: Variable, *values: Any) -> tuple[()]:
        step(var, *values)
        return ()


_register("GradientDescent", gradient_descent)
_register("Momentum", momentum, use_nesterov=False)
_register("Adagrad", adagrad)
_register("Adam", adam, use_nesterov=False)
_register("RMSProp", rms_prop)
_register("Adadelta", adadelta)
