"""Tensors made from a few numbers: Fill, Range, LinSpace, zeros and ones, counts in bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.kernels.arrays import Array, integer, ints, nothing, number, reserve
from pocketgraph.kernels.held_values import holds_values, zeros
from pocketgraph.kernels.registry import Value, kernel
from pocketgraph.kernels.steps import steps_between


@kernel("Fill")
def fill(dims: Array, value: Array) -> Array:
    sizes = reserve(ints(dims), value.dtype)
    if value.size != 1:
        raise ValueError(f"the value must be a scalar, not of shape {list(value.shape)}")
    result = np.empty(sizes, dtype=value.dtype)
    result[...] = value.reshape(())
    return result


@kernel("Range")
def range_(start: Array, limit: Array, delta: Array) -> Array:
    """start, start + delta, … before limit; each element is computed from its index, so that no error adds up."""
    whole = start.dtype.kind in "iu"
    first, last, step = (integer(v) if whole else number(v) for v in (start, limit, delta))
    if step == 0:
        raise ValueError("Requires delta != 0")
    if (step > 0 and first > last) or (step < 0 and first < last):
        raise ValueError(f"a range from {first} to {last} does not go by {step}")
    count = steps_between(start, limit, delta)
    reserve([count], start.dtype)
    if whole:
        return np.asarray(first + step * np.arange(count, dtype=np.int64)).astype(start.dtype)
    positions = np.arange(count).astype(start.dtype)
    return np.asarray(positions * delta.reshape(()) + start.reshape(()))


@kernel("LinSpace")
def lin_space(start: Array, stop: Array, num: Array) -> Array:
    """``num`` values from start to stop, both included and exact."""
    count = integer(num)
    if count <= 0:
        raise ValueError(f"Requires num > 0: {count}")
    reserve([count], start.dtype)
    kind = start.dtype.type
    if count == 1:
        return np.array(start.reshape(1))
    with np.errstate(all="ignore"):
        step = (stop.reshape(()) - start.reshape(())) / kind(count - 1)
        result = np.asarray(start.reshape(()) + np.arange(count).astype(start.dtype) * step).astype(start.dtype)
    result[0], result[-1] = start.reshape(()), stop.reshape(())  # also where the step is infinite
    return result


def _same(x: Array, what: Any) -> Array:
    if x.dtype.kind == "O":
        result = np.empty(x.shape, dtype=object)
        result[...] = b""
        return result
    return np.full(x.shape, what, dtype=x.dtype) if what else np.zeros(x.shape, x.dtype)


@kernel("ZerosLike")
def zeros_like(x: Value) -> Value:
    """Zeros; of a value that holds others (a list, an optional, a map), zeros inside of it."""
    return zeros(zeros_like, x) if holds_values(x) else _same(x, 0)


@kernel("OnesLike")
def ones_like(x: Array) -> Array:
    return _same(x, 1)


@kernel("Empty")
def empty(shape: Array, *, dtype: DType, init: bool = False) -> Array:
    """Zeros: what the op leaves undefined is better the same every time."""
    return nothing(reserve(ints(shape), dtype.numpy), dtype.numpy)


@kernel("DenseBincount")
def dense_bincount(arr: Array, size: Array, weights: Array, *, binary_output: bool = False) -> Array:
    """How often (or with what summed weight) each value below ``size`` occurs; rank 2: row by row."""
    count = integer(size)
    if count < 0 or bool(np.any(arr < 0)):
        raise ValueError("Input arr and size must be non-negative")
    kind = weights.dtype
    rows = arr.reshape(1, -1) if arr.ndim < 2 else arr
    result = np.zeros(reserve((rows.shape[0], count), kind), dtype=kind)
    for row, values in enumerate(rows):
        inside = values < count
        amounts = weights.reshape(rows.shape)[row][inside] if weights.size else np.ones(int(inside.sum()), kind)
        if binary_output:
            result[row, values[inside]] = 1
        else:
            np.add.at(result[row], values[inside], amounts)
    return result.reshape(count) if arr.ndim < 2 else result


@kernel("Bincount")
def bincount(arr: Array, size: Array, weights: Array) -> Array:
    return dense_bincount(arr.ravel(), size, weights.ravel())


@kernel("HistogramFixedWidth")
def histogram_fixed_width(values: Array, value_range: Array, nbins: Array, *, dtype: DType = INT32) -> Array:
    """Counts in ``nbins`` equal bins; what lies outside the range goes into the first or last."""
    count = integer(nbins)
    low, high = (float(v) for v in value_range.ravel())
    if count <= 0 or not low < high:
        raise ValueError(f"{count} bins over {low}..{high}")
    kind = dtype.numpy
    step = (high - low) / count
    bins = np.clip(np.floor((values.astype(np.float64).ravel() - low) / step), 0, count - 1).astype(np.int64)
    return np.bincount(bins, minlength=count).astype(kind)
