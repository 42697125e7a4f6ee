"""Sums, products and extremes over slices of an axis that indices tell, each from one place to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, highest, integer, is_float, lowest, reserve
from pocketgraph.kernels.registry import kernel


def _reduced(data: Array, indices: Array, axis: Array, combine: Callable[..., Any], nothing: Any) -> Array:
    """``data`` with ``axis`` replaced by one place for each slice, in the same type; an empty slice gives ``nothing``.

    Args:
        data: any numbers.
        indices: (n, 2): the beginning and the end of each slice; or (n + 1,): where one ends the next begins.
        axis: which one.
        combine: a ufunc's ``reduce``.
        nothing: what it begins with.

    Raises:
        RunError: an axis that there is not, or slices that begin before it.
    """
    along = integer(axis)
    if not 0 <= along < data.ndim:
        raise RunError(f"axis {along} of a tensor of shape {list(data.shape)}")
    if indices.ndim == 1:
        indices = np.stack([indices[:-1], indices[1:]], axis=1)
    if indices.ndim != 2 or indices.shape[1] != 2:
        raise RunError(f"the slices are no pairs of indices: {list(indices.shape)}")
    if indices.size and indices.min() < 0:
        raise RunError(f"a slice begins or ends at {indices.min()}")
    result = np.empty(reserve((*data.shape[:along], len(indices), *data.shape[along + 1 :]), data.dtype), data.dtype)
    into, source = np.moveaxis(result, along, 0), np.moveaxis(data, along, 0)
    for place, (start, end) in enumerate(indices.tolist()):
        into[place] = combine(source[start:end], axis=0, dtype=data.dtype, initial=nothing)
    return result


def _least(data: Array) -> Any:
    return data.dtype.type(-np.inf) if is_float(data.dtype) else lowest(data.dtype)


def _most(data: Array) -> Any:
    return data.dtype.type(np.inf) if is_float(data.dtype) else highest(data.dtype)


@kernel("ReduceSliceSum")
def reduce_slice_sum(data: Array, indices: Array, axis: Array) -> Array:
    return _reduced(data, indices, axis, np.add.reduce, data.dtype.type(0))


@kernel("ReduceSliceProd")
def reduce_slice_prod(data: Array, indices: Array, axis: Array) -> Array:
    return _reduced(data, indices, axis, np.multiply.reduce, data.dtype.type(1))


@kernel("ReduceSliceMax")
def reduce_slice_max(data: Array, indices: Array, axis: Array) -> Array:
    return _reduced(data, indices, axis, np.maximum.reduce, _least(data))


@kernel("ReduceSliceMin")
def reduce_slice_min(data: Array, indices: Array, axis: Array) -> Array:
    return _reduced(data, indices, axis, np.minimum.reduce, _most(data))
