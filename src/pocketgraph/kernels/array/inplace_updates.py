"""Rows of a tensor replaced or added to (the ops that once worked in place)."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints
from pocketgraph.kernels.registry import kernel


def _row_numbers(x: Array, i: Array, v: Array) -> Array:
    """The rows, counted round and round as the original does.

    Raises:
        RunError: shapes that do not fit.
    """
    if not x.ndim or i.ndim > 1 or v.shape != (*i.shape, *x.shape[1:]):
        raise RunError(f"shapes that do not fit: x {list(x.shape)}, i {list(i.shape)}, v {list(v.shape)}")
    if not x.shape[0] and i.size:
        raise RunError(f"x of shape {list(x.shape)} has no rows")
    return np.array([row % x.shape[0] for row in ints(i)], np.int64)


@kernel("InplaceUpdate")
def inplace_update(x: Array, i: Array, v: Array) -> Array:
    """``x`` with its rows ``i`` replaced, one after the other."""
    rows, result = _row_numbers(x, i, v), np.array(x)
    for row, value in zip(rows.tolist(), v.reshape(-1, *x.shape[1:]), strict=True):
        result[row] = value
    return result


@kernel("InplaceAdd")
def inplace_add(x: Array, i: Array, v: Array) -> Array:
    rows, result = _row_numbers(x, i, v), np.array(x)
    np.add.at(result, rows, v.reshape(-1, *x.shape[1:]))
    return result


@kernel("InplaceSub")
def inplace_sub(x: Array, i: Array, v: Array) -> Array:
    rows, result = _row_numbers(x, i, v), np.array(x)
    np.subtract.at(result, rows, v.reshape(-1, *x.shape[1:]))
    return result
