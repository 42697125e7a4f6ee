"""A feature of a batch of Examples, a column, and the dense, sparse and ragged tensors made of columns.

What does not fit is left to the general way, which has TensorFlow's errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array, reserve


class RecordColumn(NamedTuple):
    """A feature of all records.

    Attributes:
        values: one record's after the other's; what has as many in each may be of any shape.
        each: how many values each record has, -1 where it has no such feature: int64 (records,), or one number for all.
        records: how many there are.
    """

    values: Array
    each: Array | int
    records: int

    @classmethod
    def of(cls, found: Sequence[Array | None], dtype: DType) -> RecordColumn:
        """Of the values of each record, None where it has no such feature."""
        each = np.array([-1 if values is None else values.size for values in found], np.int64)
        parts = [values for values in found if values is not None]
        return cls(np.concatenate(parts) if parts else np.empty(0, dtype.numpy), each, len(found))

    def counts(self) -> Array:
        """int64 (records,): how many values each record has; -1 where it has no such feature."""
        return np.full(self.records, self.each) if isinstance(self.each, int) else self.each


FEW_PLACES = 1 << 13
"""Places of values, were all lists as long as the longest, of which looking at each is quicker than counting."""


def dense_of(column: RecordColumn, shape: Shape, default: Array, dtype: DType) -> Array | None:
    """[records, *shape], with the default where a record has no such feature; None where something does not fit."""
    dims = shape.dims
    if dims is None or None in dims[1:]:
        return None
    values, each, records = column
    inner = tuple(int(size or 0) for size in dims[1:])
    if dims and dims[0] is None:
        stride = math.prod(inner)
        counts = np.maximum(column.counts(), 0)
        if default.size != 1 or (counts % stride if stride else counts).any():
            return None
        return _filled_up(column, stride, inner, default, dtype)
    fixed = tuple(int(size or 0) for size in dims)
    size = math.prod(fixed)
    if default.size and default.shape != fixed:
        return None
    result_shape = (records, *fixed)
    if isinstance(each, int) and each == size:
        return values if values.shape == result_shape else values.reshape(result_shape)
    result_shape = reserve(result_shape, dtype.numpy)
    counts = column.counts()
    missing = counts < 0
    if not ((counts == size) | missing).all():
        return None
    if not missing.any():
        return np.asarray(values.reshape(result_shape))
    if not default.size:
        return None
    result = np.empty(result_shape, dtype.numpy)
    result[missing] = default
    result[~missing] = values.reshape(-1, *fixed)
    return result


def _filled_up(column: RecordColumn, stride: int, inner: tuple[int, ...], default: Array, dtype: DType) -> Array:
    """[records, the most that one has, *inner], the shorter ones filled up with the default."""
    counts = column.counts()
    rows, along = _places(counts)
    longest = int(counts.max(initial=0)) // max(stride, 1)
    result = np.empty(reserve((column.records, longest * stride), dtype.numpy), dtype.numpy)
    result[...] = default.reshape(-1)[0]
    result[rows, along] = column.values
    return result.reshape(column.records, longest, *inner)


def sparse_of(column: RecordColumn, *, has_one: bool = False) -> tuple[Array, Array, Array]:
    """(indices by record and place, values, shape); ``has_one``: of a single record, by place alone."""
    counts = column.counts()
    longest = int(np.maximum.reduce(counts, initial=0))
    if longest * column.records <= FEW_PLACES:
        rows, along = (np.arange(longest) < counts[:, None]).nonzero()
    else:
        rows, along = _places(counts)
    indices = np.empty(reserve((len(rows), 2), np.int64), np.int64)
    indices[:, 0], indices[:, 1] = rows, along
    shape = np.array((column.records, longest), np.int64)
    return indices[:, has_one:], column.values.reshape(-1), shape[has_one:]


def ragged_of(column: RecordColumn, splits: DType) -> tuple[Array, Array]:
    """(values, row splits)."""
    found = np.zeros(column.records + 1, splits.numpy)
    np.cumsum(np.maximum(column.counts(), 0), out=found[1:])
    return column.values.reshape(-1), found


def _places(counts: Array) -> tuple[Array, Array]:
    """The record of each value, and its place among the record's."""
    held = np.maximum(counts, 0)
    borders = np.cumsum(held)
    rows = np.repeat(np.arange(len(held)), held)
    return rows, np.asarray(np.arange(len(rows)) - np.repeat(borders - held, held))
