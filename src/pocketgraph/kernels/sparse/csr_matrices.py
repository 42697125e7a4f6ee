"""Sparse matrices kept row by row (CSR), as tf.linalg's sparse layers multiply them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, integer, ints, reserve
from pocketgraph.kernels.registry import kernel

MOST = 1 << 16
"""Matrices of one batch, each of which takes a round in Python."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One matrix: ``columns[ends[i]:ends[i + 1]]`` and ``values`` likewise are row i's; int32 the first two."""

    ends: Array
    columns: Array
    values: Array

    def rows(self) -> Array:
        """The row of each value."""
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))


@dataclass(frozen=True, eq=False)
class _Csr:
    """A matrix, or a batch of them.

    Attributes:
        shape: (rows, columns), with the batch's size in front of a batch.
        parts: the matrices.
    """

    shape: tuple[int, ...]
    parts: tuple[Rows, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        kind: np.dtype[Any] = self.parts[0].values.dtype
        return kind

    def conjugates(self) -> _Csr:
        """The matrices of the conjugates."""
        return _Csr(self.shape, tuple(replace(part, values=np.conjugate(part.values)) for part in self.parts))


def _packed(rows: Array, columns: Array, values: Array, height: int) -> Rows:
    """A matrix of values that are ordered by row."""
    reserve((height + 1,), np.dtype(np.int64))
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=height))])
    return Rows(ends.astype(np.int32), columns.astype(np.int32), values)


def _made(indices: Array, values: Array, shape: Sequence[int]) -> _Csr:
    """The matrices of these elements (n, 2 or 3), each in the order in which its elements come, row by row."""
    if len(shape) not in (2, 3):
        raise RunError(f"a sparse matrix has 2 or 3 dimensions, not {list(shape)}")
    if min(shape) < 0 or (len(shape) == 3 and shape[0] > MOST):
        raise RunError(f"no matrices of the shape {list(shape)}, of which there may be {MOST:,}")
    if indices.ndim != 2 or indices.shape != (values.size, len(shape)):
        raise RunError(f"indices of {list(indices.shape)} for {values.size} values of {list(shape)}")
    outside = ((indices < 0) | (indices >= np.array(shape))).any(axis=1)
    if outside.any():
        place = int(outside.argmax())
        raise RunError(f"indices[{place}] = {indices[place].tolist()} does not index into {list(shape)}")
    batch = indices[:, 0] if len(shape) == 3 else np.zeros(len(indices), np.int64)
    parts = []
    for number in range(shape[0] if len(shape) == 3 else 1):
        here = indices[batch == number][:, -2:]
        order = np.argsort(here[:, 0], kind="stable")
        parts.append(_packed(here[order, 0], here[order, 1], values[batch == number][order], shape[-2]))
    return _Csr(tuple(shape), tuple(parts))


def _of_type(matrix: _Csr, wanted: DType) -> _Csr:
    if matrix.parts and matrix.dtype != wanted.numpy:
        raise RunError(f"dtype of input is not equal to 'type': {matrix.dtype} vs. {wanted.name}")
    return matrix


kernel("SparseTensorToCSRSparseMatrix")(lambda indices, values, dense_shape: _made(indices, values, ints(dense_shape)))


@kernel("DenseToCSRSparseMatrix")
def dense_to_csr(dense_input: Array, indices: Array) -> _Csr:
    """The elements of ``dense_input`` at ``indices`` (n, its rank), whatever they are."""
    shape = dense_input.shape
    if indices.ndim == 2 and indices.shape[1] == len(shape) and len(shape) in (2, 3):
        inside = ((indices >= 0) & (indices < np.array(shape))).all()
        return _made(indices, dense_input[tuple(indices.T)] if inside else dense_input.ravel()[: len(indices)], shape)
    raise RunError(f"params must have rank 2 or 3 and indices as many columns: {list(shape)}, {list(indices.shape)}")


@kernel("CSRSparseMatrixComponents")
def csr_components(csr_sparse_matrix: _Csr, index: Array, *, type: DType) -> tuple[Array, Array, Array]:
    """(row ends, columns, values) of one matrix of the batch."""
    number = integer(index)
    if not 0 <= number < len(csr_sparse_matrix.parts):
        raise RunError(f"index ({number}) not in [0, {len(csr_sparse_matrix.parts)})")
    part = _of_type(csr_sparse_matrix, type).parts[number]
    return part.ends, part.columns, part.values


@kernel("CSRSparseMatrixToDense")
def csr_to_dense(sparse_input: _Csr, *, type: DType) -> Array:
    _of_type(sparse_input, type)
    result = np.zeros(reserve(sparse_input.shape, type.numpy), type.numpy)
    whole = result.reshape(len(sparse_input.parts), *sparse_input.shape[-2:])
    for place, part in zip(whole, sparse_input.parts, strict=True):
        place[part.rows(), part.columns] = part.values
    return result


@kernel("CSRSparseMatrixToSparseTensor")
def csr_to_sparse_tensor(sparse_matrix: _Csr, *, type: DType) -> tuple[Array, Array, Array]:
    """(indices, values, shape)."""
    parts = _of_type(sparse_matrix, type).parts
    found = [
        np.stack([np.full(part.values.size, number), part.rows(), part.columns], axis=1)
        for number, part in enumerate(parts)
    ]
    indices = np.concatenate([np.zeros((0, 3), np.int64), *found]).astype(np.int64)
    values = np.concatenate([np.zeros(0, type.numpy), *(part.values for part in parts)])
    shape = np.array(sparse_matrix.shape, np.int64)
    return indices[:, 3 - len(sparse_matrix.shape) :], values, shape


@kernel("SparseMatrixNNZ")
def sparse_matrix_nnz(sparse_matrix: _Csr) -> Array:
    """int32: how many elements are kept, of each matrix of a batch."""
    counts = np.array([part.values.size for part in sparse_matrix.parts], np.int32)
    return counts if len(sparse_matrix.shape) == 3 else counts.reshape(())


def _turned(matrix: _Csr, conjugate: bool) -> _Csr:
    *batch, height, width = matrix.shape
    parts = []
    for part in matrix.parts:
        order = np.argsort(part.columns, kind="stable")
        values = np.conjugate(part.values[order]) if conjugate else part.values[order]
        parts.append(_packed(part.columns[order], part.rows()[order], values, width))
    return _Csr((*batch, width, height), tuple(parts))


@kernel("SparseMatrixTranspose")
def sparse_matrix_transpose(input: _Csr, *, conjugate: bool = False, type: DType) -> _Csr:
    return _turned(_of_type(input, type), conjugate)


def _not_both(adjoint: bool, transpose: bool, name: str) -> None:
    if adjoint and transpose:
        raise RunError(f"Only one of adjoint_{name} and transpose_{name} may be true.")


def _check_product(a: Sequence[int], b: Sequence[int]) -> None:
    if len(a) != len(b) or a[-1] != b[-2] or a[:-2] != b[:-2]:
        raise RunError(f"dimensions of A and B do not agree. Shapes are: {list(a)} vs. {list(b)}")


@kernel("SparseMatrixMatMul")
def sparse_matrix_mat_mul(
    a: _Csr, b: Array, *, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, transpose_output: bool = False, conjugate_output: bool = False,
) -> Array:  # fmt: skip
    """The dense product of a sparse and a dense matrix, or of two batches of such."""
    _not_both(adjoint_a, transpose_a, "a")
    _not_both(adjoint_b, transpose_b, "b")
    left = _turned(a, adjoint_a) if adjoint_a or transpose_a else a
    right = np.swapaxes(b, -1, -2) if (adjoint_b or transpose_b) and b.ndim > 1 else b
    right = np.conjugate(right) if adjoint_b else right
    _check_product(left.shape, right.shape)
    result = np.zeros(reserve((*left.shape[:-1], right.shape[-1]), b.dtype), b.dtype)
    count = len(left.parts)
    pairs = zip(left.parts, right.reshape(count, *right.shape[-2:]), strict=True)
    for place, (part, dense) in zip(result.reshape(count, *result.shape[-2:]), pairs, strict=True):
        np.add.at(place, part.rows(), part.values[:, None] * dense[part.columns])
    result = np.swapaxes(result, -1, -2) if transpose_output else result
    return np.ascontiguousarray(np.conjugate(result) if conjugate_output else result)


@kernel("SparseMatrixSparseMatMul")
def sparse_matrix_sparse_mat_mul(
    a: _Csr, b: _Csr, *, type: DType, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> _Csr:  # fmt: skip
    """The sparse product of two sparse matrices, with an element wherever two elements meet, be their sum 0 or not."""
    _not_both(adjoint_a, transpose_a, "a")
    _not_both(adjoint_b, transpose_b, "b")
    left = _turned(_of_type(a, type), adjoint_a) if adjoint_a or transpose_a else _of_type(a, type)
    right = _turned(_of_type(b, type), adjoint_b) if adjoint_b or transpose_b else _of_type(b, type)
    _check_product(left.shape, right.shape)
    shape = (*left.shape[:-1], right.shape[-1])
    parts = tuple(_product(one, other, shape) for one, other in zip(left.parts, right.parts, strict=True))
    return _Csr(shape, parts)


def _product(one: Rows, other: Rows, shape: Sequence[int]) -> Rows:
    begins, widths = other.ends[one.columns].astype(np.int64), np.diff(other.ends)[one.columns]
    total = int(widths.sum(dtype=np.int64))
    reserve((total,), one.values.dtype)
    steps = np.arange(total) - np.repeat(np.cumsum(widths, dtype=np.int64) - widths, widths)
    met = np.repeat(begins, widths) + steps  # the place in ``other`` of every meeting
    rows = np.repeat(one.rows(), widths)
    places, number = np.unique(rows * np.int64(shape[-1]) + other.columns[met], return_inverse=True)
    values = np.zeros(len(places), one.values.dtype)
    np.add.at(values, number, np.repeat(one.values, widths) * other.values[met])
    return _packed(places // shape[-1] if len(places) else places, places % max(shape[-1], 1), values, shape[-2])
