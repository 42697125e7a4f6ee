"""Sparse tensors joined, cut, added, compared and reduced; indices are int64 (n, rank), in row-major order.

The orders of results are those of TensorFlow: row-major, duplicates kept side by side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, ints, is_float, reserve, widened
from pocketgraph.kernels.registry import kernel


def checked(indices: Array, values: Array, shape: Array, within: bool = True) -> tuple[int, ...]:
    """The dense shape, once the three parts of a sparse tensor fit each other.

    Raises:
        RunError: they do not, or an index lies outside the shape.
    """
    sizes = ints(shape)
    if indices.ndim != 2 or values.shape != indices.shape[:1] or len(sizes) != indices.shape[1]:
        raise RunError(
            f"shapes that do not fit: indices {list(indices.shape)}, values {list(values.shape)}, shape {list(sizes)}"
        )
    if within and indices.size and bool(np.any((indices < 0) | (indices >= np.array(sizes)))):
        raise RunError(f"an index lies outside the dense shape {list(sizes)}")
    return sizes


def row_major(indices: Array) -> Array:
    """The stable order that puts indices (n, rank) into row-major order."""
    if not indices.shape[1]:
        return np.arange(indices.shape[0])
    return np.lexsort(tuple(indices[:, i] for i in reversed(range(indices.shape[1]))))


def _union(first: Array, second: Array) -> list[tuple[int, int]]:
    """The two lists of indices walked side by side: for each place, where it is in each of them, or -1."""
    left, right = [tuple(row) for row in first.tolist()], [tuple(row) for row in second.tolist()]
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif left[i] < right[j]:
            found.append((i, -1))
            i += 1
        else:
            found.append((-1, j))
            j += 1
    found += [(k, -1) for k in range(i, len(left))]
    return found + [(-1, k) for k in range(j, len(right))]


def _joined(walk: list[tuple[int, int]], first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, ...]:
    """(indices, first values, second values) of a walk; what a side lacks is 0."""
    pairs = np.array(walk, dtype=np.int64).reshape(-1, 2)
    places = np.zeros((len(walk), first[0].shape[1]), dtype=np.int64)
    columns = []
    for side, (indices, values) in enumerate((first, second)):
        has = pairs[:, side] >= 0
        places[has] = indices[pairs[has, side]]
        column = np.zeros(len(walk), dtype=values.dtype)
        column[has] = values[pairs[has, side]]
        columns.append(column)
    return places, *columns


@kernel("SparseAdd")
def sparse_add(
    a_indices: Array, a_values: Array, a_shape: Array, b_indices: Array, b_values: Array, b_shape: Array, thresh: Array
) -> tuple[Array, Array, Array]:
    """(indices, values, shape) of the sum; where both have a value and the sum is smaller than ``thresh``, none."""
    if checked(a_indices, a_values, a_shape) != checked(b_indices, b_values, b_shape):
        raise RunError(f"shapes that do not fit: {list(ints(a_shape))} and {list(ints(b_shape))}")
    walk = _union(a_indices, b_indices)
    places, first, second = _joined(walk, (a_indices, a_values), (b_indices, b_values))
    alone = np.array([i < 0 or j < 0 for i, j in walk], dtype=bool)
    total = first + second
    wide = total.astype(np.int64) if total.dtype.kind == "i" else total  # in which the least of a type has a size
    kept = alone | (np.abs(wide) >= thresh.reshape(()))
    return places[kept], total[kept], a_shape


@kernel("SparseAddGrad")
def sparse_add_grad(
    backprop_val_grad: Array, a_indices: Array, b_indices: Array, sum_indices: Array
) -> tuple[Array, Array]:
    """The gradients of SparseAdd by the values of both sides: each value's is that of the sum at its place."""
    if backprop_val_grad.shape != sum_indices.shape[:1] or not a_indices.shape[1:] == b_indices.shape[1:]:
        raise RunError(f"shapes that do not fit: {list(backprop_val_grad.shape)} and {list(sum_indices.shape)}")
    return _found(a_indices, sum_indices, backprop_val_grad), _found(b_indices, sum_indices, backprop_val_grad)


def _found(wanted: Array, places: Array, values: Array) -> Array:
    """For each of ``wanted`` the value at that place, 0 where there is none."""
    table = {tuple(row): i for i, row in enumerate(places.tolist())}
    result = np.zeros(wanted.shape[0], dtype=values.dtype)
    for number, row in enumerate(wanted.tolist()):
        place = table.get(tuple(row))
        if place is not None:
            result[number] = values[place]
    return result


def _extreme(function: Callable[[Array, Array], Array]) -> Callable[..., tuple[Array, Array]]:
    def run(
        a_indices: Array, a_values: Array, a_shape: Array, b_indices: Array, b_values: Array, b_shape: Array
    ) -> tuple[Array, Array]:
        """(indices, values) of the larger (smaller) of both at every place that one of them has; missing ones are 0."""
        if checked(a_indices, a_values, a_shape) != checked(b_indices, b_values, b_shape):
            raise RunError(f"shapes that do not fit: {list(ints(a_shape))} and {list(ints(b_shape))}")
        places, first, second = _joined(_union(a_indices, b_indices), (a_indices, a_values), (b_indices, b_values))
        return places, function(first, second)

    return run


kernel("SparseSparseMaximum")(_extreme(np.maximum))
kernel("SparseSparseMinimum")(_extreme(np.minimum))


@kernel("SparseConcat")
def sparse_concat(*parts: Array, concat_dim: int) -> tuple[Array, Array, Array]:
    """(indices, values, shape) of sparse tensors in a row; ``parts``: all indices, all values, all shapes."""
    count = len(parts) // 3
    all_indices, all_values, all_shapes = parts[:count], parts[count : 2 * count], parts[2 * count :]
    shapes = [checked(*part) for part in zip(all_indices, all_values, all_shapes, strict=True)]
    rank = len(shapes[0])
    if not -rank <= concat_dim < rank:
        raise RunError(f"Concat dimension must be in range [{-rank}, {rank}), got {concat_dim}")
    axis = concat_dim % rank
    moved, start = [], 0
    for indices, shape in zip(all_indices, shapes, strict=True):
        if len(shape) != rank or any(
            a != b for i, (a, b) in enumerate(zip(shape, shapes[0], strict=True)) if i != axis
        ):
            raise RunError(f"shapes that do not fit: {list(shapes[0])} and {list(shape)}, joined along {axis}")
        shifted = indices.copy()
        shifted[:, axis] += start
        moved.append(shifted)
        start += shape[axis]
    places, values = np.concatenate(moved), np.concatenate(all_values)
    order = row_major(places)
    total = [start if i == axis else s for i, s in enumerate(shapes[0])]
    return places[order], values[order], np.array(total, dtype=np.int64)


@kernel("SparseSlice")
def sparse_slice(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> tuple[Array, Array, Array]:
    """(indices, values, shape) of the part from ``start`` on; what reaches over the edge is cut off."""
    sizes = checked(indices, values, shape)
    first, wanted = ints(start), ints(size)
    if len(first) != len(sizes) or len(wanted) != len(sizes) or min(wanted, default=0) < 0:
        raise RunError(f"a slice of {list(wanted)} from {list(first)} does not fit {list(sizes)}")
    taken = [min(w, s - f) if f < s else 0 for f, w, s in zip(first, wanted, sizes, strict=True)]
    end = np.array(first, dtype=np.int64) + np.array(taken, dtype=np.int64)
    inside = ((indices >= np.array(first, dtype=np.int64)) & (indices < end)).all(axis=1)
    return indices[inside] - np.array(first, dtype=np.int64), values[inside], np.array(taken, dtype=np.int64)


@kernel("SparseSliceGrad")
def sparse_slice_grad(
    backprop_val_grad: Array, input_indices: Array, input_start: Array, output_indices: Array
) -> Array:
    """The gradient of SparseSlice by the values: 0 for what was not taken."""
    if backprop_val_grad.shape != output_indices.shape[:1] or input_indices.shape[1:] != output_indices.shape[1:]:
        raise RunError(f"shapes that do not fit: {list(backprop_val_grad.shape)} and {list(output_indices.shape)}")
    if input_start.shape != input_indices.shape[1:]:
        raise RunError(f"input_start {list(input_start.shape)} does not fit indices {list(input_indices.shape)}")
    return _found(input_indices, output_indices + input_start, backprop_val_grad)


@kernel("SparseSplit")
def sparse_split(split_dim: Array, indices: Array, values: Array, shape: Array, *, num_split: int) -> tuple[Array, ...]:
    """All indices, all values, all shapes of ``num_split`` parts; the first ones are larger where it leaves a rest."""
    sizes, axis = checked(indices, values, shape), integer(split_dim)
    if not -len(sizes) <= axis < len(sizes):
        raise RunError(f"Input split_dim should be between 0 and rank ({len(sizes)}), got {axis}")
    axis %= len(sizes)
    if not 1 <= num_split <= sizes[axis]:
        raise RunError(f"Input num_split should be between 1 and the splitting dimension size ({sizes[axis]})")
    share, rest = divmod(sizes[axis], num_split)
    places, taken, shapes, start = [], [], [], 0
    for part in range(num_split):
        width = share + (part < rest)
        mine = (indices[:, axis] >= start) & (indices[:, axis] < start + width)
        moved = indices[mine]
        moved[:, axis] -= start
        places.append(moved)
        taken.append(values[mine])
        shapes.append(np.array([width if i == axis else s for i, s in enumerate(sizes)], dtype=np.int64))
        start += width
    return (*places, *taken, *shapes)


def _reduced(
    indices: Array, values: Array, shape: Array, axes: Array, keep_dims: bool, larger: bool
) -> tuple[Array, Array, tuple[int, ...]]:
    """(indices of the groups that hold something, their reduced values, the dense shape)."""
    sizes = checked(indices, values, shape)
    rank = len(sizes)
    wanted = ints(axes)
    if any(not -rank <= a < rank for a in wanted):
        raise RunError(f"Invalid reduction dimension in {list(wanted)}, for input with {rank} dimensions")
    gone = {a % rank for a in wanted}
    kept = [a for a in range(rank) if a not in gone]
    result = tuple(1 if a in gone else s for a, s in enumerate(sizes)) if keep_dims else tuple(sizes[a] for a in kept)
    order = row_major(indices[:, kept])
    rows, numbers = indices[order], values[order]
    keys = rows[:, kept]
    starts = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]) if len(rows) else np.zeros(0, np.int64)
    wide = numbers.astype(np.float64) if is_float(numbers.dtype) else numbers
    found = (np.fmax if larger else np.add).reduceat(wide, starts) if len(rows) else wide  # NaN is never largest
    if larger and wide.dtype.kind == "f":
        found = np.where(np.isnan(found), -np.inf, found)
    found = found.astype(values.dtype)
    places = rows[starts].copy()
    if keep_dims:
        places[:, sorted(gone)] = 0
        return places, found, result
    return places[:, kept], found, result


def _dense_reduction(larger: bool) -> Callable[..., Array]:
    def run(
        input_indices: Array, input_values: Array, input_shape: Array, reduction_axes: Array, *, keep_dims: bool = False
    ) -> Array:
        """The dense reduction of a sparse tensor; 0 where it holds nothing."""
        places, found, shape = _reduced(input_indices, input_values, input_shape, reduction_axes, keep_dims, larger)
        result = np.zeros(reserve(shape, found.dtype), dtype=found.dtype)
        if found.size:
            result[tuple(places.T)] = found if shape else found[0]
        return result

    return run


def _sparse_reduction(larger: bool) -> Callable[..., tuple[Array, Array, Array]]:
    def run(
        input_indices: Array, input_values: Array, input_shape: Array, reduction_axes: Array, *, keep_dims: bool = False
    ) -> tuple[Array, Array, Array]:
        """(indices, values, shape) of the reduction of a sparse tensor."""
        places, found, shape = _reduced(input_indices, input_values, input_shape, reduction_axes, keep_dims, larger)
        return places, found, np.array(shape, dtype=np.int64)

    return run


kernel("SparseReduceSum")(_dense_reduction(False))
kernel("SparseReduceMax")(_dense_reduction(True))
kernel("SparseReduceSumSparse")(_sparse_reduction(False))
kernel("SparseReduceMaxSparse")(_sparse_reduction(True))


@kernel("SparseSoftmax")
def sparse_softmax(sp_indices: Array, sp_values: Array, sp_shape: Array) -> Array:
    """The values after a softmax along the last axis over what is there."""
    sizes = checked(sp_indices, sp_values, sp_shape)
    if len(sizes) < 2:
        raise RunError(f"Input should have rank >= 2, got {len(sizes)}")
    if not sp_values.size:
        return sp_values
    _, groups = np.unique(sp_indices[:, :-1], axis=0, return_inverse=True)
    groups = groups.ravel()
    wide = widened(sp_values).astype(np.float64)
    top = np.full(int(groups.max()) + 1, -np.inf)
    np.maximum.at(top, groups, wide)
    powers = np.exp(wide - top[groups])
    totals = np.zeros_like(top)
    np.add.at(totals, groups, powers)
    return np.asarray(powers / totals[groups]).astype(sp_values.dtype)


def _with_dense(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array, Array, Array], Array]:
    def run(sp_indices: Array, sp_values: Array, sp_shape: Array, dense: Array) -> Array:
        """The values combined with those of ``dense``, broadcast to the sparse shape, at their places."""
        sizes = checked(sp_indices, sp_values, sp_shape)
        if dense.ndim > len(sizes) or any(
            d not in (1, s) for d, s in zip(dense.shape[::-1], sizes[::-1], strict=False)
        ):
            raise RunError(f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got {list(dense.shape)}")
        picked = np.broadcast_to(dense, sizes)[tuple(sp_indices.T)]
        return np.asarray(function(widened(sp_values), widened(picked))).astype(sp_values.dtype, copy=False)

    return run


def _divided(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if bool(np.any(b == 0)):
        raise RunError("Integer division by zero")
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        quotient += ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    return quotient


kernel("SparseDenseCwiseAdd")(_with_dense(np.add))
kernel("SparseDenseCwiseMul")(_with_dense(np.multiply))
kernel("SparseDenseCwiseDiv")(_with_dense(_divided))


@kernel("SparseFillEmptyRowsGrad")
def sparse_fill_empty_rows_grad(reverse_index_map: Array, grad_values: Array) -> tuple[Array, Array]:
    """(gradient by the values, gradient by the default value) of SparseFillEmptyRows."""
    if bool(np.any((reverse_index_map < 0) | (reverse_index_map >= grad_values.size))):
        raise RunError(f"Elements in reverse index must be in [0, {grad_values.size})")
    rest = np.ones(grad_values.size, dtype=bool)
    rest[reverse_index_map] = False
    kind = np.float64 if is_float(grad_values.dtype) else grad_values.dtype
    total = np.asarray(grad_values[rest].sum(dtype=kind)).astype(grad_values.dtype)
    return grad_values[reverse_index_map], total
