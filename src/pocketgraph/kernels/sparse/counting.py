"""Counts of values, row by row: dense ones of sparse and ragged inputs, and sparse ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pocketgraph.kernels.arrays import Array, integer, ints, reserve
from pocketgraph.kernels.registry import kernel


def _tally(rows: Array | None, count: int, values: Array, size: Array, weights: Array, binary: bool) -> Array:
    """How often each of 0…size-1 is among ``values``, weighted; ``rows`` says in which of ``count`` rows each is."""
    bins = integer(size)
    if bins < 0:
        raise ValueError(f"size ({bins}) must be non-negative")
    if values.size and values.min() < 0:
        raise ValueError("Input arr must be non-negative!")
    if weights.size and weights.size != values.size:
        raise ValueError(f"{weights.size} weights for {values.size} values")
    shape = (bins,) if rows is None else (count, bins)
    result = np.zeros(reserve(shape, weights.dtype), weights.dtype)
    kept = values < bins
    places = values[kept] if rows is None else (rows[kept], values[kept])
    if binary:
        result[places] = 1
    else:
        np.add.at(result, places, weights.ravel()[kept] if weights.size else result.dtype.type(1))
    return result


@kernel("SparseBincount")
def sparse_bincount(
    indices: Array, values: Array, dense_shape: Array, size: Array, weights: Array, *, binary_output: bool = False
) -> Array:
    """(size,), or (rows, size) for a matrix: how often each number is among the values of a sparse tensor."""
    shape = ints(dense_shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"a sparse tensor of 1 or 2 dimensions is counted, not of shape {list(shape)}")
    if indices.shape != (values.size, len(shape)):
        raise ValueError(f"indices of shape {list(indices.shape)} for {values.size} values of {len(shape)} dimensions")
    rows = indices[:, 0] if len(shape) == 2 else None
    if indices.size and bool(np.any((indices < 0) | (indices >= np.array(shape)))):
        raise ValueError(f"indices point outside {list(shape)}")
    return _tally(rows, shape[0], values, size, weights, binary_output)


def row_numbers(splits: Array, count: int) -> Array:
    """The row of each value of a ragged tensor of two dimensions.

    Raises:
        ValueError: the splits do not go from 0 to ``count`` without a step back.
    """
    ends = splits.astype(np.int64)
    if not ends.size or ends[0] != 0 or ends[-1] != count or bool(np.any(np.diff(ends) < 0)):
        raise ValueError(f"splits must rise from 0 to the number of values, {count}, not {ends[:20].tolist()}")
    return np.repeat(np.arange(ends.size - 1), np.diff(ends))


@kernel("RaggedBincount")
def ragged_bincount(splits: Array, values: Array, size: Array, weights: Array, *, binary_output: bool = False) -> Array:
    """(rows, size): how often each number is in each row."""
    return _tally(row_numbers(splits, values.size), splits.size - 1, values, size, weights, binary_output)


def _sparse_counts(
    rows: Iterable[int] | None, count: int, values: Array, weights: Array, minlength: int, maxlength: int, binary: bool
) -> tuple[Array, Array, Array]:
    """(indices, counts, dense shape), rows and in them values in order."""
    if values.size and values.min() < 0:
        raise ValueError("Input values must all be non-negative")
    if weights.size and weights.size != values.size:
        raise ValueError(f"Weights and values must have the same shape: {weights.size} and {values.size} elements")
    found: dict[tuple[int, int], object] = {}
    flat, factors = values.ravel().tolist(), weights.ravel()
    most = 0  # of no values there is a column all the same, as in TensorFlow
    for place, (row, value) in enumerate(zip([0] * len(flat) if rows is None else rows, flat, strict=True)):
        if 0 <= maxlength <= value:
            continue
        most = max(most, value)
        one = weights.dtype.type(1)
        added = factors[place] if factors.size and not binary else one
        before = found.get((row, value))
        found[row, value] = added if before is None or binary else before + added
    keys = sorted(found)
    indices = np.array(keys, np.int64).reshape(-1, 2)
    counts = np.array([found[key] for key in keys], weights.dtype)
    width = maxlength if maxlength >= 0 else max(most + 1, minlength)
    if rows is None:
        return indices[:, 1:].copy(), counts, np.array([width], np.int64)
    return indices, counts, np.array([count, width], np.int64)


@kernel("DenseCountSparseOutput")
def dense_count(
    values: Array, weights: Array, *, binary_output: bool, minlength: int = -1, maxlength: int = -1
) -> tuple[Array, Array, Array]:
    """A vector's or each row's values and how often they are there, as a sparse tensor."""
    if values.ndim not in (1, 2):
        raise ValueError(f"Input must be a 1 or 2-dimensional tensor. Got: {list(values.shape)}")
    rows = None if values.ndim == 1 else np.repeat(np.arange(values.shape[0]), values.shape[1]).tolist()
    return _sparse_counts(rows, values.shape[0], values, weights, minlength, maxlength, binary_output)


@kernel("SparseCountSparseOutput")
def sparse_count(
    indices: Array, values: Array, dense_shape: Array, weights: Array, *, binary_output: bool, minlength: int = -1,
    maxlength: int = -1,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The same for a sparse vector or matrix."""
    shape = ints(dense_shape)
    if indices.shape != (values.size, len(shape)) or len(shape) not in (1, 2):
        raise ValueError(f"indices of shape {list(indices.shape)} for {values.size} values of {len(shape)} dimensions")
    if len(shape) == 2 and bool(np.any((indices[:, 0] < 0) | (indices[:, 0] >= shape[0]))):
        raise ValueError(f"indices point outside {list(shape)}")
    rows = indices[:, 0].tolist() if len(shape) == 2 else None
    return _sparse_counts(rows, shape[0], values, weights, minlength, maxlength, binary_output)


@kernel("RaggedCountSparseOutput")
def ragged_count(
    splits: Array, values: Array, weights: Array, *, binary_output: bool, minlength: int = -1, maxlength: int = -1
) -> tuple[Array, Array, Array]:
    """The same for the rows of a ragged tensor."""
    rows = row_numbers(splits, values.size).tolist()
    return _sparse_counts(rows, splits.size - 1, values, weights, minlength, maxlength, binary_output)
