"""Sparse tensors, given as indices, values and a shape: made dense, put in order, multiplied with dense ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.kernels.array.gather_scatter import scatter_nd
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel

FEW = 256  # elements that are looked through more quickly one by one


@kernel("SparseToDense")
def sparse_to_dense(
    sparse_indices: Array,
    output_shape: Array,
    sparse_values: Array,
    default_value: Array,
    *,
    validate_indices: bool = True,
) -> Array:
    shape = reserve(ints(output_shape), sparse_values.dtype)
    result = np.empty(shape, dtype=sparse_values.dtype)
    result[...] = default_value
    rows = sparse_indices.reshape(-1, len(shape)) if sparse_indices.ndim < 2 else sparse_indices
    if sparse_values.shape not in ((), rows.shape[:1]):
        raise ValueError(f"values of shape {list(sparse_values.shape)} where [] or [{len(rows)}] is needed")
    few = _few_places(rows, shape) if rows.size <= FEW and rows.ndim == 2 else None
    if few is not None and (not validate_indices or sorted(set(few)) == few):
        result.reshape(-1)[few] = sparse_values
        return result
    if rows.shape[1] != len(shape) or bool(np.any((rows < 0) | (rows >= np.array(shape)))):
        raise ValueError(f"indices of shape {list(sparse_indices.shape)} do not point into {list(shape)}")
    if validate_indices and len(rows) > 1:
        flat = rows @ _strides(shape)
        steps = flat[1:] - flat[:-1]
        if bool((steps <= 0).any()):
            place = int(np.argmax(steps <= 0)) + 1
            raise ValueError(
                f"indices[{place}] = {rows[place].tolist()} is "
                f"{'repeated' if steps[place - 1] == 0 else 'out of order. Many sparse ops require sorted indices'}"
            )
    if shape:
        result[tuple(rows.T)] = sparse_values
    elif len(rows):  # all are the one place of a scalar, the last is in it
        result[...] = sparse_values.reshape(-1)[-1]
    return result


def _few_places(rows: Array, shape: tuple[int, ...]) -> list[int] | None:
    """The places of these indices in the flat tensor; None where one lies outside, or there are none."""
    if not rows.size or rows.shape[1] != len(shape) or rows.min() < 0:
        return None
    columns, places = rows.T.tolist(), [0] * len(rows)
    for column, size in zip(columns, shape, strict=True):
        if max(column) >= size:
            return None
        places = [place * size + index for place, index in zip(places, column, strict=True)]
    return places


@kernel("SparseTensorDenseAdd")
def sparse_tensor_dense_add(a_indices: Array, a_values: Array, a_shape: Array, b: Array) -> Array:
    if ints(a_shape) != b.shape:
        raise ValueError(f"shapes that do not fit: {list(ints(a_shape))} and {list(b.shape)}")
    return np.asarray(b + scatter_nd(a_indices, a_values, a_shape))


@kernel("SparseTensorDenseMatMul")
def sparse_tensor_dense_mat_mul(
    a_indices: Array, a_values: Array, a_shape: Array, b: Array, *, adjoint_a: bool = False, adjoint_b: bool = False
) -> Array:
    rows, columns = ints(a_shape)
    if a_indices.shape[1:] != (2,):
        raise ValueError(f"indices of shape {list(a_indices.shape)} of a matrix of {[rows, columns]}")
    right = np.conjugate(b.T) if adjoint_b else b
    down, along = (a_indices[:, 1], a_indices[:, 0]) if adjoint_a else (a_indices[:, 0], a_indices[:, 1])
    height, inner = (columns, rows) if adjoint_a else (rows, columns)
    if right.shape[0] != inner:
        raise ValueError(f"shapes that do not fit: {[height, inner]} and {list(right.shape)}")
    if bool(np.any((down < 0) | (down >= height) | (along < 0) | (along >= inner))):
        raise ValueError(f"indices point outside {[height, inner]}")
    result = np.zeros(reserve((height, right.shape[1]), b.dtype), dtype=b.dtype)
    values = np.conjugate(a_values) if adjoint_a else a_values
    np.add.at(result, down, values[:, None] * right[along])
    return result


@kernel("SparseReorder")
def sparse_reorder(input_indices: Array, input_values: Array, input_shape: Array) -> tuple[Array, Array]:
    """Indices and values in row-major order."""
    if input_indices.shape != (input_values.size, input_shape.size):
        raise ValueError(
            f"indices {list(input_indices.shape)} for {input_values.size} values of {input_shape.size} dimensions"
        )
    order = np.lexsort(tuple(input_indices[:, i] for i in reversed(range(input_indices.shape[1]))))
    return input_indices[order], input_values[order]


@kernel("SparseReshape")
def sparse_reshape(input_indices: Array, input_shape: Array, new_shape: Array) -> tuple[Array, Array]:
    """(indices, shape) of the same elements in another dense shape; one size may be -1."""
    if new_shape.ndim == 1 and input_shape.tolist() == new_shape.tolist():
        return input_indices, new_shape  # nothing is moved, and as in TensorFlow nothing is looked at
    before = ints(input_shape)
    after = list(ints(new_shape))
    total = math.prod(before)
    known = math.prod([s for s in after if s != -1])
    if after.count(-1) == 1 and known and total % known == 0:
        after[after.index(-1)] = total // known
    if min(after, default=0) < 0 or math.prod(after) != total or (input_indices.size and not total):
        raise ValueError(f"shapes that do not fit: {list(before)} and {list(ints(new_shape))}")
    if tuple(after) == before:
        return input_indices, np.array(after, dtype=np.int64)
    flat = input_indices.astype(np.int64) @ _strides(before)  # not looked at: an index outside is one in the new shape
    places = []
    for stride in _strides(after).tolist():
        places.append(np.sign(flat) * (np.abs(flat) // stride))  # towards zero
        flat = flat - places[-1] * stride
    return np.stack(places, axis=1), np.array(after, dtype=np.int64)


def _strides(sizes: Sequence[int]) -> Array:
    """How far apart in memory neighbours along each axis lie."""
    return np.array([math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))], dtype=np.int64)


@kernel("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    indices: Array, values: Array, dense_shape: Array, default_value: Array
) -> tuple[Array, Array, Array, Array]:
    """(indices, values, which rows were empty, where each old element is now): each empty row gets one default."""
    if dense_shape.size != indices.shape[-1] or indices.shape[:1] != values.shape[:1] or not dense_shape.size:
        raise ValueError(
            f"indices {list(indices.shape)} and values {list(values.shape)} do not fit {dense_shape.size} sizes"
        )
    rows = int(dense_shape.item(0))
    if len(indices) <= FEW and 0 < rows <= FEW and indices.ndim == 2:
        first = indices[:, 0].tolist()
        present = set(first)
        if len(present) == rows and min(first) == 0 and max(first) == rows - 1 and first == sorted(first):
            return indices, values, np.zeros(rows, np.bool_), np.arange(len(first))
        if not present or (min(first) >= 0 and max(first) < rows):
            return _few_rows_filled(indices, values, first, rows, default_value)
    reserve([rows], np.int64)
    counts = np.bincount(indices[:, 0], minlength=rows) if indices.size else np.zeros(rows, dtype=np.int64)
    if counts.size > rows:
        raise ValueError(f"an index lies outside the {rows} rows")
    empty = counts == 0
    added = np.zeros((int(empty.sum()), indices.shape[1]), dtype=np.int64)
    added[:, 0] = np.flatnonzero(empty)
    whole = np.concatenate([indices, added])
    filler = np.empty(added.shape[0], dtype=values.dtype)
    filler[...] = default_value
    order = np.argsort(whole[:, 0], kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return whole[order], np.concatenate([values, filler])[order], empty, back[: indices.shape[0]]


def _few_rows_filled(
    indices: Array, values: Array, first: list[int], rows: int, default_value: Array
) -> tuple[Array, Array, Array, Array]:
    """SparseFillEmptyRows where there are but a few: ``first`` are the rows of the elements."""
    present = set(first)
    missing = [row for row in range(rows) if row not in present]
    keys = first + missing
    order = sorted(range(len(keys)), key=keys.__getitem__)
    back = [0] * len(keys)
    for place, source in enumerate(order):
        back[source] = place
    added = np.zeros((len(missing), indices.shape[1]), dtype=np.int64)
    added[:, 0] = missing
    filler = np.full(len(missing), default_value, values.dtype)
    empty = np.zeros(rows, np.bool_)
    empty[missing] = True
    moved = np.array(order)
    return (
        np.concatenate([indices, added])[moved],
        np.concatenate([values, filler])[moved],
        empty,
        np.array(back[: len(first)], np.int64),
    )
