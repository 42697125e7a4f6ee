"""Constants that are not computed before they are written: weights, transposed and scaled on their way to the file."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pocketgraph.graph.tensor import Array as Array

T = TypeVar("T")

BLOCK = 1 << 17  # elements transposed at a time; NumPy's strided copies are several times faster in the CPU's caches
PART = 2 << 20  # bytes
FEWEST_ROWS, MOST_ROWS = 16, 256  # of a block; each becomes a piece of the result's rows
SPARE = 16  # elements beside a block's rows, so that elements of a column do not lie in the same lines of a cache


class Constant:
    """An array that is known when compiling.

    It is ``read()``, its axes permuted, times ``scale``. ``shape`` is the shape after that.
    """

    __slots__ = ("_is_stored", "dtype", "permutation", "read", "scale", "shape")

    def __init__(
        self,
        read: Callable[[], Array],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        permutation: tuple[int, ...] | None = None,
        scale: Array | None = None,
        *,
        is_stored: bool = False,
    ) -> None:
        """``scale`` broadcasts against ``shape``; None means 1. ``is_stored``: reading computes nothing."""
        self._is_stored = is_stored and permutation is None and scale is None
        self.read = read
        self.shape = shape
        self.dtype = dtype
        self.permutation = permutation
        self.scale = scale

    @staticmethod
    def of(array: Any) -> Constant:
        """An array that is already in memory."""
        values = np.asarray(array)
        return Constant(lambda: values, values.shape, values.dtype, is_stored=True)

    @property
    def nbytes(self) -> int:
        return int(math.prod(self.shape)) * self.dtype.itemsize

    def numpy(self, into: Array | None = None) -> Array:
        """The values, contiguous; computed anew each time.

        Args:
            into: memory for as many elements, in one dimension, that may be used; by default there is new memory.
        """
        return np.ascontiguousarray(self.read()).reshape(self.shape) if self._is_stored else self._computed(into)

    @np.errstate(over="ignore", invalid="ignore")  # weights may be infinite, or become so
    def _computed(self, into: Array | None) -> Array:
        values = self.read()
        if self.permutation is None:
            values = np.ascontiguousarray(values).reshape(self.shape)
            return values if self.scale is None else np.multiply(values, self.scale, dtype=self.dtype)
        return _permuted(values, self.permutation, self.scale, into)

    def by_column(self) -> tuple[Array, Array | None]:
        """The values as a matrix with a column for each index of the first axis, and what the columns are to be
        multiplied by (None for 1): as they are kept, where the first axis is the last one there."""
        values = self.read()
        count = self.shape[0]
        if self.permutation is not None and _moves_last(self.permutation):
            scale = self.scale
            if scale is None or scale.size == count == scale.shape[0]:
                return values.reshape(-1, count), None if scale is None else scale.reshape(count)
        return self.numpy().reshape(count, -1).T, None

    def in_parts(self) -> list[Constant]:
        """Constants whose values, one after the other, are this one's: a large transposed one in parts that fit into a
        cache while they are made and written."""
        count = -(-self.nbytes // PART)
        if count < 2 or self.permutation is None or not _moves_last(self.permutation):
            return [self]
        rows = -(-self.shape[0] // count)
        starts = range(0, self.shape[0], rows)
        read = kept_for(self.read, len(starts))
        return [self._rows(read, start, min(start + rows, self.shape[0])) for start in starts]

    def _rows(self, read: Callable[[], Array], start: int, stop: int) -> Constant:
        """Some of the first axis, which is the last one of what is read."""
        shape, scale = (stop - start, *self.shape[1:]), self.scale
        if scale is not None and scale.ndim == len(shape) and len(scale) > 1:
            scale = scale[start:stop]
        return Constant(lambda: read()[..., start:stop], shape, self.dtype, self.permutation, scale)

    def permuted(self, permutation: tuple[int, ...]) -> Constant:
        """The same with its axes permuted (as ``numpy.transpose`` does)."""
        shape = tuple(self.shape[axis] for axis in permutation)
        if self.permutation is None and self.scale is None:
            before = self.shape
            return Constant(lambda: self.read().reshape(before), shape, self.dtype, permutation)
        return Constant(self.numpy, shape, self.dtype, permutation)

    def reshaped(self, shape: tuple[int, ...]) -> Constant:
        """The same elements in another shape."""
        if self.permutation is None and self.scale is None:
            return Constant(self.read, shape, self.dtype, is_stored=self._is_stored)
        return Constant(self.numpy, shape, self.dtype)

    def scaled(self, scale: Array) -> Constant:
        """The same times ``scale``, which broadcasts against the shape."""
        total = scale if self.scale is None else self.scale * scale
        return Constant(self.read, self.shape, self.dtype, self.permutation, total)


def kept_for(read: Callable[[], T], readers: int) -> Callable[[], T]:
    """``read`` whose arrays, which may take long to make, are kept until so many have read them."""
    kept: list[T] = []
    lock, left = threading.Lock(), readers

    def shared() -> T:
        nonlocal left
        with lock:
            values = kept[0] if kept else read()
            left -= 1
            kept[:] = [values] if left > 0 else []
            return values

    return shared


def _moves_last(permutation: tuple[int, ...]) -> bool:
    """Whether the last axis becomes the first one, and nothing else changes."""
    return permutation == (len(permutation) - 1, *range(len(permutation) - 1))


def _permuted(values: Array, permutation: tuple[int, ...], scale: Array | None, into: Array | None = None) -> Array:
    """``values`` transposed and scaled into a contiguous array, new or in the memory of ``into``."""
    shape = tuple(values.shape[axis] for axis in permutation)
    result = np.empty(shape, values.dtype) if into is None else into[: values.size].reshape(shape)
    last = values.ndim - 1
    if _moves_last(permutation) and values.size:
        columns = values.shape[last]
        by_column = None
        if scale is not None and scale.size == columns == scale.shape[0]:
            by_column = scale.reshape(columns)
        _transpose(values.reshape(-1, columns), by_column, result.reshape(columns, -1))
        if scale is not None and by_column is None:
            np.multiply(result, scale, out=result)
        return result
    if scale is None:
        np.copyto(result, values.transpose(permutation))
    else:
        np.multiply(values.transpose(permutation), scale, out=result)
    return result


def _transpose(flat: Array, by_column: Array | None, target: Array) -> None:
    """Writes a matrix, its columns times ``by_column``, into ``target`` transposed."""
    rows, columns = flat.shape
    size = min(rows, max(FEWEST_ROWS, min(MOST_ROWS, BLOCK // columns)))
    memory = np.empty((size, columns + SPARE), flat.dtype)
    for start in range(0, rows, size):
        taken = flat[start : start + size]
        block = memory[: len(taken), :columns]
        if by_column is None:
            np.copyto(block, taken)
        else:  # here both are read along their rows
            np.multiply(taken, by_column, out=block)
        np.copyto(target[:, start : start + size], block.T)
