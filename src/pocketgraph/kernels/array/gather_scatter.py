"""Elements by index: Gather, Scatter, OneHot, Where, partitions and stitches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, axis_of, check_count, integer, ints, kept_nan, nothing, reserve, widened
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.xla_dimensions import GatherAxes

MANY = 1 << 20  # elements of which it is looked at how large what is made of them will be
POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")
"""What ``bad_indices_policy`` may be; on CPUs the default is to refuse."""
SMALL = 1 << 22  # elements of which a gathering makes no more than that
UNSIGNED: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.int32): np.dtype(np.uint32),
    np.dtype(np.int64): np.dtype(np.uint64),
}


def check_indices(indices: Array, limit: int) -> None:
    """Raises ValueError at the first index outside [0, limit)."""
    unsigned = UNSIGNED.get(indices.dtype)
    if unsigned is not None and (not indices.size or int(indices.view(unsigned).max()) < limit):
        return  # a negative number is a large one without its sign
    bad = np.flatnonzero((indices < 0) | (indices >= limit))
    if bad.size:
        where = np.unravel_index(int(bad[0]), indices.shape) if indices.ndim else ()
        value = int(indices.ravel()[bad[0]])
        raise ValueError(f"indices{[int(w) for w in where]} = {value} is not in [0, {limit})")


@kernel("Gather")
def gather(params: Array, indices: Array) -> Array:
    if params.ndim < 1:
        raise ValueError("params must be at least 1 dimensional")
    check_indices(indices, params.shape[0])
    index = indices.astype(np.int64, copy=False)
    if params.size * index.size > SMALL:
        reserve((*index.shape, *params.shape[1:]), params.dtype)
    if not params.flags.c_contiguous:  # of which ``take`` would make a copy first
        return np.asarray(params[index, ...])
    return np.asarray(params.take(index, 0), dtype=params.dtype)


@kernel("GatherV2")
def gather_v2(params: Array, indices: Array, axis: Array, *, batch_dims: int = 0) -> Array:
    """Slices of ``params`` along ``axis``; the first ``batch_dims`` axes of both go together."""
    batch = axis_of(batch_dims, indices.ndim + (batch_dims >= 0), "batch_dims")  # may take all axes of the indices
    along = axis_of(axis, params.ndim)
    if batch > along or params.shape[:batch] != indices.shape[:batch]:
        raise ValueError(f"batch_dims {batch} does not fit {list(params.shape)} and {list(indices.shape)}")
    check_indices(indices, params.shape[along])
    index = indices.astype(np.int64, copy=False)
    if batch == 0:
        if along == 0 and params.size * index.size <= SMALL:
            return np.asarray(params.take(index, 0), dtype=params.dtype)
        reserve((*params.shape[:along], *index.shape, *params.shape[along + 1 :]), params.dtype)
        return np.asarray(np.take(params, index, axis=along), dtype=params.dtype)
    shape = (*params.shape[:along], *index.shape[batch:], *params.shape[along + 1 :])
    result = np.empty(reserve(shape, params.dtype), dtype=params.dtype)
    for place in np.ndindex(params.shape[:batch]):
        result[place] = np.take(params[place], index[place], axis=along - batch)
    return result


def _split_index(indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """The columns of ``indices`` (its last axis), each checked against its dimension of ``shape``."""
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or not shape or depth > len(shape):
        raise ValueError(f"indices of shape {list(indices.shape)} do not point into {list(shape)}")
    columns = tuple(indices[..., i].astype(np.int64) for i in range(depth))
    for column, limit in zip(columns, shape, strict=False):
        check_indices(column, limit)
    return columns


def are_ignored(policy: str) -> bool:
    """Whether a ``bad_indices_policy`` passes over indices that point outside; all others refuse them.

    Raises:
        RunError: there is no such policy.
    """
    if policy not in POLICIES:
        raise RunError(f"bad_indices_policy is one of {', '.join(POLICIES[1:])}, not '{policy}'")
    return policy == "IGNORE"


def inside(shape: tuple[int, ...], indices: Array) -> Array:
    """Which rows of ``indices`` (…, depth) point into ``shape``: bool of shape (…)."""
    limits = np.asarray(shape[: indices.shape[-1]], np.int64)
    found: Array = np.all((indices >= 0) & (indices < limits), axis=-1)
    return found


def good_ones(shape: tuple[int, ...], indices: Array, updates: Array, policy: str) -> tuple[Array, Array]:
    """The rows of ``indices``, with their updates, that are scattered to ``shape``: not all only where the policy
    ignores what points outside."""
    if not are_ignored(policy) or not indices.ndim or indices.shape[-1] > len(shape):
        return indices, updates
    good = inside(shape, indices)
    wanted = indices.shape[:-1] + shape[indices.shape[-1] :]
    if updates.shape != wanted:
        raise RunError(f"updates have the shape {list(updates.shape)}, not {list(wanted)}")
    return indices[good], updates[good]


@kernel("GatherNd")
def gather_nd(params: Array, indices: Array, *, bad_indices_policy: str = "") -> Array:
    """What the rows of ``indices`` point at; zeros (or empty texts) for those that are ignored."""
    if bad_indices_policy and are_ignored(bad_indices_policy) and indices.ndim and indices.shape[-1] <= params.ndim:
        good = inside(params.shape, indices)
        if not good.all():
            shape = (*good.shape, *params.shape[indices.shape[-1] :])
            result = np.full(reserve(shape, params.dtype), b"" if params.dtype == object else 0, params.dtype)
            result[good] = gather_nd(params, indices[good])
            return result
    columns = _split_index(indices, params.shape)
    if not params.size and math.prod(indices.shape[:-1]):
        raise RunError(f"Requested more than 0 entries, but params is empty. Params shape: {list(params.shape)}")
    if not columns:
        return np.array(np.broadcast_to(params, indices.shape[:-1] + params.shape))
    index: Any = (*columns, Ellipsis)
    return np.asarray(params[index])


def scattered(base: Array, indices: Array, updates: Array, function: np.ufunc | None) -> Array:
    """``base``, changed in place: the parts that the rows of ``indices`` name, combined with ``updates``."""
    columns = _split_index(indices, base.shape)
    depth = indices.shape[-1]
    wanted = indices.shape[:-1] + base.shape[depth:]
    if not updates.ndim or (updates.size and not indices.size):
        raise ValueError(f"indices of shape {list(indices.shape)} point at no rows for updates, as TensorFlow wants")
    if updates.shape != wanted:
        raise ValueError(f"updates of shape {list(updates.shape)} where {list(wanted)} is wanted")
    if not updates.size:
        return base
    rest = base.shape[depth:]
    places = np.zeros(indices.shape[:-1], np.int64)
    for column, size in zip(columns, base.shape, strict=False):
        places *= size
        places += column
    rows, target = updates.reshape(-1, *rest), base.reshape(-1, *rest)
    if not np.may_share_memory(target, base):
        raise ValueError("the base of scattered updates must lie in one piece")
    flat = places.reshape(-1)
    if function is None:
        _, last = np.unique(flat[::-1], return_index=True)  # of several updates of one place the last wins
        chosen = flat.size - 1 - last
        target[flat[chosen]] = rows[chosen]
    else:
        function.at(target, flat, rows)  # one index into one dimension is what NumPy is quick at
    return base


@kernel("ScatterNd")
def scatter_nd(indices: Array, updates: Array, shape: Array, *, bad_indices_policy: str = "") -> Array:
    """Zeros with the updates added at their places; updates of one place add up, strings one behind the other."""
    sizes = reserve(ints(shape), updates.dtype)
    if bad_indices_policy:
        indices, updates = good_ones(sizes, indices, updates, bad_indices_policy)
    if updates.dtype.kind == "O":
        base = np.full(sizes, b"", dtype=object)
    else:
        base = np.zeros(sizes, dtype=widened(updates).dtype)
    return scattered(base, indices, widened(updates), np.add).astype(updates.dtype, copy=False)


def _changed(tensor: Array, indices: Array, updates: Array, how: np.ufunc | None, policy: str) -> Array:
    if policy:
        indices, updates = good_ones(tensor.shape, indices, updates, policy)
    return scattered(tensor.copy(), indices, updates, how)


def _register_scatter(how: np.ufunc | None, *ops: str, keeps_nan: bool = False) -> Callable[..., Array]:
    @kernel(*ops)
    def scatter(tensor: Array, indices: Array, updates: Array, *, bad_indices_policy: str = "") -> Array:
        made = _changed(tensor, indices, updates, how, bad_indices_policy)
        return kept_nan(tensor, made) if keeps_nan else made

    return scatter


tensor_scatter_update = _register_scatter(None, "TensorScatterUpdate")
_register_scatter(np.add, "TensorScatterAdd", "ScatterNdNonAliasingAdd")
_register_scatter(np.subtract, "TensorScatterSub")
_register_scatter(np.fmin, "TensorScatterMin", keeps_nan=True)
_register_scatter(np.fmax, "TensorScatterMax", keeps_nan=True)


@kernel("Where")
def where(input: Array) -> Array:
    """The places of what is not zero, one row each, in row-major order."""
    if input.ndim == 1 and input.dtype.kind in "biuf":
        return input.nonzero()[0].astype(np.int64, copy=False)[:, None]
    if input.size > MANY:
        reserve([int(np.count_nonzero(input)), input.ndim], np.int64)
    return np.argwhere(np.asarray(input != input.dtype.type(0))).astype(np.int64).reshape(-1, input.ndim)


@kernel("OneHot")
def one_hot(indices: Array, depth: Array, on_value: Array, off_value: Array, *, axis: int = -1) -> Array:
    """A new axis of size ``depth``: on_value where the index points (outside it: nowhere), off_value elsewhere."""
    count = integer(depth)
    along = axis_of(axis, indices.ndim + 1)
    shape = (*indices.shape[:along], count, *indices.shape[along:])
    reserve(shape, on_value.dtype)
    result = np.full(shape, off_value, on_value.dtype)
    numbers = indices if indices.ndim else indices[None]
    inside = (numbers >= 0) & (numbers < count)
    marked = inside.nonzero() if indices.ndim else ()
    places = (*marked[:along], numbers[inside], *marked[along:])
    result[places] = on_value
    return result


@kernel("DynamicPartition")
def dynamic_partition(data: Array, partitions: Array, *, num_partitions: int) -> tuple[Array, ...]:
    check_count(num_partitions)
    if data.shape[: partitions.ndim] != partitions.shape:
        raise ValueError(f"partitions of shape {list(partitions.shape)} do not divide {list(data.shape)}")
    check_indices(partitions, num_partitions)
    if not partitions.ndim:
        data, partitions = data[None], partitions[None]
    return tuple(np.asarray(data[partitions == part]) for part in range(num_partitions))


@kernel("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(*indices_and_data: Array) -> Array:
    """Rows put at the places that the indices name; of several for one place the last stays."""
    half = len(indices_and_data) // 2
    indices, data = indices_and_data[:half], indices_and_data[half:]
    row = data[0].shape[indices[0].ndim :]
    count = max([max(i.ravel().tolist()) for i in indices if i.size], default=-1) + 1
    result = nothing(reserve((count, *row), data[0].dtype), data[0].dtype)
    for places, rows in zip(indices, data, strict=True):
        if rows.shape != places.shape + row:
            raise ValueError(f"shapes that do not fit: {list(places.shape)} places for {list(rows.shape)}")
        check_indices(places, count)
        listed = rows.reshape(places.size, *row)
        if places.size <= 1:
            result[places.reshape(-1)] = listed
            continue
        for place, values in zip(places.ravel().tolist(), listed, strict=True):
            result[place] = values
    return result


@kernel("XlaGather")
def xla_gather(operand: Array, start_indices: Array, slice_sizes: Array, *, dimension_numbers: str | bytes) -> Array:
    """Windows of ``slice_sizes`` elements at each start, moved inside where they would reach beyond the operand."""
    axes, sizes = GatherAxes.of(dimension_numbers), ints(slice_sizes)
    axes.check(operand.ndim, start_indices.ndim)
    starts = start_indices[..., None] if axes.vector == start_indices.ndim else start_indices
    batch_axes = [axis for axis in range(starts.ndim) if axis != axes.vector]
    starts = np.moveaxis(starts, axes.vector, -1)
    outer = starts.shape[:-1]
    narrow = (*axes.collapsed, *axes.operand_batch)
    if len(sizes) != operand.ndim or len(axes.start_map) != starts.shape[-1]:
        raise ValueError(f"windows {list(sizes)} and starts of {starts.shape[-1]} numbers for {list(operand.shape)}")
    if any(not 0 <= size <= have for size, have in zip(sizes, operand.shape, strict=True)) or any(
        sizes[axis] > 1 for axis in narrow
    ):
        raise ValueError(f"windows {list(sizes)} do not fit {list(operand.shape)}")
    reserve((*outer, *sizes), operand.dtype)
    places: list[Any] = []
    for axis, size in enumerate(sizes):
        first = np.zeros(outer, np.int64)
        if axis in axes.start_map:
            first = starts[..., axes.start_map.index(axis)].clip(0, operand.shape[axis] - size)
        elif axis in axes.operand_batch:
            along = batch_axes.index(axes.start_batch[axes.operand_batch.index(axis)])
            first = np.broadcast_to(np.arange(outer[along]).reshape(-1, *[1] * (len(outer) - along - 1)), outer)
        window = np.arange(size).reshape(-1, *[1] * (operand.ndim - axis - 1))
        places.append(first.reshape(*outer, *[1] * operand.ndim).astype(np.int64) + window)
    found = operand[tuple(places)]
    found = found.reshape(*outer, *(sizes[axis] for axis in axes.window_axes(operand.ndim)))
    around = [axis for axis in range(found.ndim) if axis not in axes.offset]
    return np.moveaxis(found, range(found.ndim), [*around, *axes.offset])


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
