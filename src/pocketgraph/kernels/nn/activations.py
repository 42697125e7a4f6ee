"""Activation functions, their gradients, and Softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pocketgraph.kernels.arrays import Array, in_own_type, widened
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, kernel
from pocketgraph.kernels.selu_constants import SELU_SCALE, SELU_SCALE_ALPHA

SLOPE = 0.20000000298023224  # 0.2 as the attribute, a float32, holds it


def _elu(x: Array) -> Array:
    return np.asarray(np.where(x < 0, np.expm1(np.minimum(x, 0)), x))


def _selu(x: Array) -> Array:
    kind = x.dtype.type
    low = kind(SELU_SCALE_ALPHA) * np.expm1(np.minimum(x, 0))
    return np.asarray(np.where(x < 0, low, kind(SELU_SCALE) * x))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _softsign(x: Array) -> Array:
    return np.asarray(x / (x.dtype.type(1) + np.abs(x)))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "Relu": lambda x: np.asarray(np.maximum(x, x.dtype.type(0))),
    "Relu6": lambda x: np.asarray(np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(6))),
    "Elu": _elu,
    "Selu": _selu,
    "Softplus": _softplus,
    "Softsign": _softsign,
}


for _op, _function in FUNCTIONS.items():
    kernel(_op)(in_own_type(_function))


@kernel("LeakyRelu")
def leaky_relu(features: Array, *, alpha: float = SLOPE) -> Array:
    x = widened(features)
    return np.asarray(np.where(x > 0, x, x * x.dtype.type(alpha))).astype(features.dtype, copy=False)


def _number(mask: Array, like: Array) -> Array:
    """A mask as zeros and ones; NumPy multiplies with these sooner than with truth values."""
    return mask.astype(like.dtype)


GRADIENTS: dict[str, Callable[[Array, Array], Array]] = {
    "ReluGrad": lambda dy, x: dy * _number(x > 0, dy),
    "Relu6Grad": lambda dy, x: dy * _number((x > 0) & (x < 6), dy),
    "SoftplusGrad": lambda dy, x: np.asarray(dy / (1 + np.exp(-x))),
    "SoftsignGrad": lambda dy, x: np.asarray(dy / np.square(1 + np.abs(x))),
    # these two are given the function's result
    "EluGrad": lambda dy, y: np.where(y < 0, dy * (y + 1), dy),
    "SeluGrad": lambda dy, y: np.where(y < 0, dy * (y + y.dtype.type(SELU_SCALE_ALPHA)), dy * y.dtype.type(SELU_SCALE)),
}
"""By op: the gradients that take the incoming gradient and the function's argument (or its result)."""


BLOCK = 1 << 16
"""Elements whose gradient is computed at a time where there are many: 256 kB of float32, which stay in the cache."""


def _gradient(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def in_blocks(gradients: Array, features: Array, made: Array) -> Array:
        dy, x, result = gradients.reshape(-1), features.reshape(-1), made.reshape(-1)
        for start in range(0, dy.size, BLOCK):
            some = slice(start, start + BLOCK)
            result[some] = function(dy[some], x[some])
        return made

    def run(gradients: Array, features: Array, *, context: Context | None = None) -> Array:
        if features.size > BLOCK and _are_plain(gradients, features):
            kind = features.dtype
            made = np.empty(features.shape, kind) if context is None else recycled(context, features.shape, kind)
            return in_blocks(gradients, features, made)
        found = function(widened(gradients), widened(features))
        return np.asarray(found).astype(features.dtype, copy=False)

    return run


def _are_plain(gradients: Array, features: Array) -> bool:
    """Whether both are float32 of one shape, in one piece."""
    return (
        gradients.shape == features.shape and gradients.dtype == features.dtype == np.float32
        and gradients.flags.c_contiguous and features.flags.c_contiguous
    )  # fmt: skip


for _op, _grad in GRADIENTS.items():
    kernel(_op)(_gradient(_grad))


@kernel("LeakyReluGrad")
def leaky_relu_grad(gradients: Array, features: Array, *, alpha: float = SLOPE) -> Array:
    slope = gradients.dtype.type(alpha)
    return np.asarray(np.where(features > 0, gradients, gradients * slope)).astype(features.dtype, copy=False)


def shifted(logits: Array) -> Array:
    """``logits`` less their largest along the last axis, so that exponentials do not overflow."""
    top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    return np.asarray(logits - top)


@kernel("Softmax")
def softmax(logits: Array) -> Array:
    """e^x / sum e^x along the last axis."""
    if logits.ndim < 1:
        raise ValueError("logits must have at least one dimension")
    with np.errstate(all="ignore"):
        powers = np.exp(shifted(widened(logits)))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True)).astype(logits.dtype, copy=False)


@kernel("LogSoftmax")
def log_softmax(logits: Array) -> Array:
    if logits.ndim < 1:
        raise ValueError("logits must have at least one dimension")
    low = shifted(widened(logits))
    return np.asarray(low - np.log(np.exp(low).sum(axis=-1, keepdims=True))).astype(logits.dtype, copy=False)
