"""Comparisons, and the choice between two tensors by a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import PLAIN, Array, reserve, widened
from pocketgraph.kernels.math.arithmetic import LARGE, paired
from pocketgraph.kernels.registry import kernel

ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    def run(x: Array, y: Array) -> Array:
        if x.dtype not in PLAIN or x.dtype is not y.dtype or (x.shape != y.shape and x.ndim and y.ndim):
            paired(x, y)
            return np.asarray(function(widened(x), widened(y)), dtype=np.bool_)
        result = function(x, y)
        return result if type(result) is np.ndarray else np.asarray(result)

    return run


for _op, _function in ORDERS.items():
    kernel(_op)(_comparison(_function))


def _fits(x: Array, y: Array) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False))


def _register_equality(op: str, compare: Callable[[Array, Array], Array]) -> None:
    plain = _comparison(compare)

    @kernel(op)
    def equality(x: Array, y: Array, *, incompatible_shape_error: bool = True) -> Array:
        if not incompatible_shape_error and not _fits(x, y):
            return np.array(op == "NotEqual")
        return plain(x, y)


_register_equality("Equal", np.equal)
_register_equality("NotEqual", np.not_equal)


@kernel("ApproximateEqual")
def approximate_equal(x: Array, y: Array, *, tolerance: float = 1e-5) -> Array:
    difference = np.abs(x - y)
    return np.asarray(difference <= difference.dtype.type(tolerance))


@kernel("Select")
def select(condition: Array, t: Array, e: Array) -> Array:
    """The first form: the condition is a scalar, has the shape of the values, or is one entry a row of them."""
    if t.shape != e.shape:
        raise ValueError(f"shapes that do not fit: {list(t.shape)} and {list(e.shape)}")
    if condition.shape not in ((), t.shape) and condition.shape != t.shape[:1]:
        raise ValueError(f"a condition of shape {list(condition.shape)} does not choose from {list(t.shape)}")
    if condition.ndim == 1 and t.ndim > 1:
        condition = condition.reshape(-1, *[1] * (t.ndim - 1))
    return np.asarray(np.where(condition, t, e))


@kernel("SelectV2")
def select_v2(condition: Array, t: Array, e: Array) -> Array:
    """The second form: all three broadcast together."""
    paired(t, e)
    if condition.size * max(t.size, e.size) > LARGE:
        reserve(np.broadcast_shapes(condition.shape, t.shape, e.shape), t.dtype)
    return np.asarray(np.where(condition, t, e))


@kernel("ClipByValue")
def clip_by_value(t: Array, clip_value_min: Array, clip_value_max: Array) -> Array:
    """The lower bound where the bounds are the wrong way round; a bound that is NaN bounds nothing.

    Real and imaginary parts of complex numbers are bounded by those of the bounds, each by itself.
    """
    if any(bound.ndim and bound.shape != t.shape for bound in (clip_value_min, clip_value_max)):
        raise ValueError("clip_value_min and clip_value_max must be either of the same shape as input, or a scalar")
    if t.dtype.kind == "c":
        result = np.empty_like(t)
        result.real = clip_by_value(t.real, clip_value_min.real, clip_value_max.real)
        result.imag = clip_by_value(t.imag, clip_value_min.imag, clip_value_max.imag)
        return result
    if t.dtype.kind in "fV" and any(np.isnan(bound).any() for bound in (clip_value_min, clip_value_max)):
        low = np.where(clip_value_max < t, clip_value_max, t)
        return np.asarray(np.where(low < clip_value_min, clip_value_min, low)).astype(t.dtype, copy=False)
    return np.asarray(np.maximum(np.minimum(t, clip_value_max), clip_value_min))


@kernel("CompareAndBitpack")
def compare_and_bitpack(input: Array, threshold: Array) -> Array:
    """uint8, eight elements of the last axis each: a bit is 1 where the element is greater than ``threshold``."""
    if threshold.ndim or not input.ndim or input.shape[-1] % 8:
        raise RunError(
            f"input {list(input.shape)} must end in a multiple of 8, threshold {list(threshold.shape)} be one"
        )
    bits = input.astype(bool) if input.dtype == bool else input > threshold
    return np.packbits(bits, axis=-1)
