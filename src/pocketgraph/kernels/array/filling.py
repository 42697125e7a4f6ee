"""Tensors made from a few numbers: Fill, Range, LinSpace, zeros and ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, integer, ints, nothing, number, reserve
from pocketgraph.kernels.range_length import steps_between
from pocketgraph.kernels.registry import Value, kernel
from pocketgraph.kernels.variant_arithmetic import holds_values, zeros


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


kernel("OnesLike")(lambda x: _same(x, 1))


@kernel("Empty")
def empty(shape: Array, *, dtype: DType) -> Array:
    """Zeros: what the op leaves undefined is better the same every time."""
    return nothing(reserve(ints(shape), dtype.numpy), dtype.numpy)
