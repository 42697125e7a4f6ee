"""Sums, products and extremes over slices of an axis that indices tell, each from one place to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, least, most, reserve
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


REDUCTIONS: dict[str, tuple[np.ufunc, Callable[[np.dtype[Any]], Any]]] = {
    "ReduceSliceSum": (np.add, lambda dtype: 0),
    "ReduceSliceProd": (np.multiply, lambda dtype: 1),
    "ReduceSliceMax": (np.maximum, least),
    "ReduceSliceMin": (np.minimum, most),
}
"""What each combines by, and what an empty slice of a type gives."""


def _register(op: str, combine: np.ufunc, nothing: Callable[[np.dtype[Any]], Any]) -> None:
    @kernel(op)
    def reduce_slice(data: Array, indices: Array, axis: Array) -> Array:
        return _reduced(data, indices, axis, combine.reduce, data.dtype.type(nothing(data.dtype)))


for _op, _row in REDUCTIONS.items():
    _register(_op, *_row)
