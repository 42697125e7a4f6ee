"""Optimizers: how a variable moves along its gradient, step by step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.state.variables import Variable, change
from pocketgraph.kernels.training.elementwise_updates import IN_PLACE, update


def gradient_descent(var: Variable, alpha: Array, delta: Array) -> None:
    """var -= alpha · delta"""

    def step(now: Array, grad: Array) -> None:
        now -= alpha * grad

    update([var], delta, step)


def momentum(
    var: Variable, accum: Variable, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool = False
) -> None:
    """accum = momentum · accum + grad; var -= lr · accum (with Nesterov: lr · grad + lr · momentum · accum)"""

    def step(now: Array, sums: Array, grad: Array) -> None:
        sums *= momentum
        sums += grad
        now -= grad * lr + sums * momentum * lr if use_nesterov else lr * sums

    update([var, accum], grad, step)


def adagrad(var: Variable, accum: Variable, lr: Array, grad: Array, *, update_slots: bool = True) -> None:
    """accum += grad²; var -= lr · grad / √accum"""

    def step(now: Array, squares: Array, grad: Array) -> None:
        if update_slots:
            squares += grad * grad
        now -= lr * grad / np.sqrt(squares)

    update([var, accum], grad, step)


def adam(
    var: Variable, m: Variable, v: Variable, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array,
    beta2: Array, epsilon: Array, grad: Array, *, use_nesterov: bool = False,
) -> None:  # fmt: skip
    """m and v are running means of grad and grad²; var -= lr·√(1-β₂ᵗ)/(1-β₁ᵗ) · m/(√v+ε) (Kingma and Ba, 2015)"""
    one = grad.dtype.type(1)
    alpha = lr * np.sqrt(one - beta2_power) / (one - beta1_power)

    def step(now: Array, first: Array, second: Array, grad: Array) -> None:
        change = grad - first
        change *= one - beta1
        first += change
        np.multiply(grad, grad, out=change)
        change -= second
        change *= one - beta2
        second += change
        ahead = first * beta1 + (one - beta1) * grad if use_nesterov else first
        below = np.sqrt(second, out=change)
        below += epsilon
        now -= ahead * alpha / below

    update([var, m, v], grad, step)


def rms_prop(
    var: Variable, ms: Variable, mom: Variable, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> None:
    """ms is a running mean of grad²; mom = momentum·mom + lr·grad/√(ms+ε); var -= mom"""
    one = grad.dtype.type(1)

    def step(now: Array, squares: Array, moved: Array, grad: Array) -> None:
        squares += (grad * grad - squares) * (one - rho)
        moved *= momentum
        moved += grad * lr / np.sqrt(squares + epsilon)
        now -= moved

    update([var, ms, mom], grad, step)


def adadelta(
    var: Variable, accum: Variable, accum_update: Variable, lr: Array, rho: Array, epsilon: Array, grad: Array
) -> None:
    """The step is √(accum_update+ε)/√(accum+ε) · grad, both running means (Zeiler, 2012)"""
    one = grad.dtype.type(1)

    def step(now: Array, squares: Array, moved: Array, grad: Array) -> None:
        squares *= rho
        squares += grad * grad * (one - rho)
        move = np.sqrt(moved + epsilon) / np.sqrt(squares + epsilon) * grad
        now -= lr * move
        moved *= rho
        moved += move * move * (one - rho)

    update([var, accum, accum_update], grad, step)


def ada_max(
    var: Variable, m: Variable, v: Variable, beta1_power: Array, lr: Array, beta1: Array, beta2: Array,
    epsilon: Array, grad: Array,
) -> None:  # fmt: skip
    """m is a running mean of grad, v = max(β₂·v, |grad|); var -= lr/(1-β₁ᵗ) · m/(v+ε) (Kingma and Ba, 2015)"""
    one = grad.dtype.type(1)
    change(m, lambda now: now + (grad - now) * (one - beta1))
    change(v, lambda now: _larger(beta2 * now, np.abs(grad)))
    change(var, lambda now: now - lr / (one - beta1_power) * (m.read() / (v.read() + epsilon)))


def _larger(kept: Array, other: Array) -> Array:
    """``other`` where it is larger: a NaN that is there stays, and one that comes is passed over."""
    return np.where(kept < other, other, kept)


def _signed(m: Variable, beta: Array, grad: Array) -> Array:
    change(m, lambda now: now * beta + grad * (grad.dtype.type(1) - beta))
    return np.asarray(np.sign(grad) * np.sign(m.read()))


def add_sign(var: Variable, m: Variable, lr: Array, alpha: Array, sign_decay: Array, beta: Array, grad: Array) -> None:
    """var -= lr · (α + decay · sign(grad)·sign(m)) · grad (Bello and others, 2017)"""
    signs = _signed(m, beta, grad)
    change(var, lambda now: now - lr * (alpha + sign_decay * signs) * grad)


def power_sign(
    var: Variable, m: Variable, lr: Array, logbase: Array, sign_decay: Array, beta: Array, grad: Array
) -> None:
    """var -= lr · e^(logbase · decay · sign(grad)·sign(m)) · grad (Bello and others, 2017)"""
    signs = _signed(m, beta, grad)
    change(var, lambda now: now - lr * np.exp(logbase * sign_decay * signs) * grad)


def centered_rms_prop(
    var: Variable, mg: Variable, ms: Variable, mom: Variable, lr: Array, rho: Array, momentum: Array,
    epsilon: Array, grad: Array,
) -> None:  # fmt: skip
    """RMSProp with the variance of the gradient, ms - mg², in place of its mean square"""
    one = grad.dtype.type(1)
    change(ms, lambda now: now + (grad * grad - now) * (one - rho))
    change(mg, lambda now: now + (grad - now) * (one - rho))
    spread = ms.read() - mg.read() * mg.read() + epsilon
    change(mom, lambda now: lr * grad / np.sqrt(spread) + now * momentum)
    change(var, lambda now: now - mom.read())


def _shrunk(point: Array, rate: Array, l1: Array, l2: Array) -> Array:
    """The proximal step: towards zero by rate·l1, then by the factor 1/(1 + rate·l2)."""
    if np.all(l1 > 0):
        point = np.sign(point) * np.maximum(np.abs(point) - rate * l1, 0)
    return np.asarray(point / (1 + rate * l2))


def check_strengths(lr: Array, *strengths: Array, power: Any = 0, may_rest: bool = False) -> None:
    """Raises RunError for what TensorFlow refuses, NaN too: a rate or a strength below 0, a power above it."""
    if not (lr >= 0 if may_rest else lr > 0):
        raise RunError(f"lr must be {'0 or more' if may_rest else 'above 0'}, not {lr}")
    for strength in strengths:
        if not strength >= 0:
            raise RunError(f"a strength of regularization must be 0 or more, not {strength}")
    if not power <= 0:
        raise RunError(f"lr_power must be 0 or less, not {power}")


def proximal_gradient_descent(var: Variable, alpha: Array, l1: Array, l2: Array, delta: Array) -> None:
    """A step of gradient descent, then the proximal one (Duchi and Singer, 2009)"""
    change(var, lambda now: _shrunk(now - alpha * delta, alpha, l1, l2))


def proximal_adagrad(var: Variable, accum: Variable, lr: Array, l1: Array, l2: Array, grad: Array) -> None:
    """A step of Adagrad, then the proximal one with the same rate"""
    check_strengths(lr, l1, l2)
    change(accum, lambda now: now + grad * grad)
    rate = lr / np.sqrt(accum.read())
    change(var, lambda now: _shrunk(now - rate * grad, rate, l1, l2))


def adagrad_da(
    var: Variable, total: Variable, squares: Variable, grad: Array, lr: Array, l1: Array, l2: Array, step: Array
) -> None:
    """var = -lr·total / (l2·step·lr + √squares), the total drawn towards zero by l1·step (Duchi and others, 2011)"""
    change(total, lambda now: now + grad)
    change(squares, lambda now: now + grad * grad)
    count, kind = step.astype(grad.dtype), grad.dtype.type
    drawn = total.read()
    if np.all(l1 > 0):
        drawn = np.sign(drawn) * np.maximum(np.abs(drawn) - l1 * count, kind(0))
    below = l2 * count * lr + np.sqrt(squares.read())
    change(var, lambda now: -lr * drawn / below)


def ftrl(
    var: Variable, accum: Variable, linear: Variable, grad: Array, lr: Array, l1: Array, l2: Array, lr_power: Array,
    *, multiply_linear_by_lr: bool = False,
) -> None:  # fmt: skip
    """Follow the regularized leader (McMahan and others, 2013)"""
    _ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


def ftrl_v2(
    var: Variable, accum: Variable, linear: Variable, grad: Array, lr: Array, l1: Array, l2: Array,
    l2_shrinkage: Array, lr_power: Array, *, multiply_linear_by_lr: bool = False,
) -> None:  # fmt: skip
    """FTRL whose linear term takes grad + 2·l2_shrinkage·var; the term may be kept multiplied by lr"""
    shrunk = grad + 2 * l2_shrinkage * var.read()
    _ftrl(var, accum, linear, grad, shrunk, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _ftrl(
    var: Variable, accum: Variable, linear: Variable, grad: Array, shrunk: Array, lr: Array, l1: Array, l2: Array,
    lr_power: Array, multiply_linear_by_lr: bool,
) -> None:  # fmt: skip
    before, now = accum.read(), accum.read() + grad * grad
    weights = var.read()
    grown, old = now**-lr_power, before**-lr_power
    if multiply_linear_by_lr:
        change(linear, lambda value: value + shrunk * lr - (grown - old) * weights)
        least, below = l1 * lr, grown + 2 * l2 * lr
    else:
        change(linear, lambda value: value + shrunk - (grown - old) / lr * weights)
        least, below = l1, grown / lr + 2 * l2
    total = linear.read()
    change(var, lambda _: np.where(np.abs(total) > least, (least * np.sign(total) - total) / below, 0))
    change(accum, lambda _: now)


def adagrad_v2(
    var: Variable, accum: Variable, lr: Array, epsilon: Array, grad: Array, *, update_slots: bool = True
) -> None:
    """accum += grad²; var -= lr · grad / (√accum + ε)"""
    if update_slots:
        change(accum, lambda now: now + grad * grad)
    change(var, lambda now: now - lr * grad / (np.sqrt(accum.read()) + epsilon))


def adam_with_amsgrad(
    var: Variable, m: Variable, v: Variable, vhat: Variable, beta1_power: Array, beta2_power: Array, lr: Array,
    beta1: Array, beta2: Array, epsilon: Array, grad: Array,
) -> None:  # fmt: skip
    """Adam that divides by the largest v so far (Reddi and others, 2018)"""
    one = grad.dtype.type(1)
    alpha = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    change(m, lambda now: now + (grad - now) * (one - beta1))
    change(v, lambda now: now + (grad * grad - now) * (one - beta2))
    change(vhat, lambda now: _larger(now, v.read()))
    change(var, lambda now: now - m.read() * alpha / (np.sqrt(vhat.read()) + epsilon))


def keras_momentum(
    var: Variable, accum: Variable, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool = False
) -> None:
    """accum = momentum · accum - lr · grad; var += accum (with Nesterov: momentum · accum - lr · grad)"""
    change(accum, lambda now: momentum * now - lr * grad)
    step = accum.read()
    change(var, lambda now: now + (momentum * step - lr * grad if use_nesterov else step))


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

    def run_anew(*inputs: Any, **attributes: Any) -> Any:
        had = [value.read() for value in inputs if isinstance(value, Variable)]  # who has a value keeps it as it is
        made = run(*inputs, **attributes)
        del had
        return made

    options = [p for p in inspect.signature(step).parameters.values() if p.kind is p.KEYWORD_ONLY]
    inputs = inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)
    run_anew.__signature__ = run.__signature__ = inspect.Signature([inputs, *options])  # type: ignore[attr-defined]
    run.without = {IN_PLACE: run_anew}  # type: ignore[attr-defined]
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
    "AdaMax": ada_max,
    "AddSign": add_sign,
    "PowerSign": power_sign,
    "CenteredRMSProp": centered_rms_prop,
    "ProximalGradientDescent": proximal_gradient_descent,
    "ProximalAdagrad": proximal_adagrad,
    "AdagradDA": adagrad_da,
    "Ftrl": ftrl,
    "FtrlV2": ftrl_v2,
    "AdagradV2": adagrad_v2,
}
"""By optimizer: what ApplyX and ResourceApplyX do to the variable and its slots."""

for _name, _step in STEPS.items():
    offer_both(f"Apply{_name}", _step)

# Only resource variables have these.
offer("ResourceApplyAdamWithAmsgrad", True, adam_with_amsgrad)

offer("ResourceApplyKerasMomentum", True, keras_momentum)
