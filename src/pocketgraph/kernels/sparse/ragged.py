"""Ragged tensors: rows of unlike lengths, as values and where the rows end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.budgets import check_memory
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.range_length import steps_between
from pocketgraph.kernels.registry import kernel


@kernel("RaggedRange")
def ragged_range(starts: Array, limits: Array, deltas: Array, *, Tsplits: DType = INT64) -> tuple[Array, Array]:
    """(row splits, values): a range for each row; a scalar goes for all rows."""
    sizes = {v.size for v in (starts, limits, deltas) if v.ndim}
    if len(sizes) > 1 or any(v.ndim > 1 for v in (starts, limits, deltas)):
        raise RunError("starts, limits, and deltas must have the same shape")
    count = sizes.pop() if sizes else 1
    columns = [np.broadcast_to(v, (count,)) for v in (starts, limits, deltas)]
    rows, total = [], 0
    for start, limit, delta in zip(*columns, strict=True):
        if delta == 0:
            raise RunError("Requires delta != 0")
        size = 0 if (limit < start if delta > 0 else limit > start) else steps_between(start, limit, delta)
        total += size
        check_memory(total * starts.dtype.itemsize, f"a result of {total:,} elements")
        if starts.dtype.kind != "f":
            rows.append(np.arange(size).astype(starts.dtype) * delta + start)
            continue
        row = np.full(size, delta, starts.dtype)
        row[:1] = start
        rows.append(np.add.accumulate(row, dtype=starts.dtype))
    splits = np.cumsum([0, *(row.size for row in rows)]).astype(Tsplits.numpy)
    return splits, np.concatenate(rows) if rows else np.zeros(0, starts.dtype)


def _checked_splits(splits: Array, count: int) -> Array:
    ends = splits.astype(np.int64)
    if ends.ndim != 1 or not ends.size or ends[0] != 0 or ends[-1] != count or bool((np.diff(ends) < 0).any()):
        raise RunError(f"Invalid ragged splits: they must rise from 0 to {count}, not {ends.ravel()[:20].tolist()}")
    return ends


def _ends(splits: Sequence[Array], values: Array) -> list[Array]:
    """Nested splits, checked against each other and the values, as int64."""
    counts = [*(split.size - 1 for split in splits[1:]), values.shape[0]]
    return [_checked_splits(split, count) for split, count in zip(splits, counts, strict=True)]


@kernel("RaggedGather")
def ragged_gather(*parts: Array, PARAMS_RAGGED_RANK: int) -> tuple[Array, ...]:
    """(nested splits of the result, its values): the rows that ``indices``, the last input, names.

    Of a single row, which a scalar names, there is no split that says where it ends.
    """
    splits, values, indices = parts[:PARAMS_RAGGED_RANK], parts[PARAMS_RAGGED_RANK], parts[-1]
    ends = _ends(splits, values)
    rows = indices.ravel().astype(np.int64)
    if rows.size and (rows.min() < 0 or rows.max() >= ends[0].size - 1):
        bad = int(rows[(rows < 0) | (rows >= ends[0].size - 1)][0])
        raise RunError(f"indices = {bad} is not in [0, {ends[0].size - 1})")
    found = []
    for axis in range(indices.ndim - 1):  # the axes of the indices but the last become rows of one length
        outer = int(np.prod(indices.shape[: axis + 1], dtype=np.int64))
        found.append(np.arange(outer + 1, dtype=np.int64) * indices.shape[axis + 1])
    chosen = rows
    for end in ends:
        starts, sizes = end[chosen], end[chosen + 1] - end[chosen]
        found.append(np.concatenate([[0], np.cumsum(sizes)]))
        reserve((int(sizes.sum()),), np.int64)
        offsets = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen = np.repeat(starts, sizes) + offsets
    if not indices.ndim:
        del found[0]
    return (*(end.astype(splits[0].dtype) for end in found), values[chosen])


@kernel("RaggedTensorToSparse")
def ragged_tensor_to_sparse(*parts: Array) -> tuple[Array, Array, Array]:
    """(indices, values, dense shape)."""
    values = parts[-1]
    ends = _ends(parts[:-1], values)
    inner = values.shape[1:]
    columns = [np.arange(ends[0].size - 1)]
    sizes = [ends[0].size - 1]
    for end in ends:
        lengths = (end[1:] - end[:-1]).astype(np.int64)
        columns = [np.repeat(column, lengths) for column in columns]
        columns.append(np.arange(int(end[-1])) - np.repeat(end[:-1], lengths))
        sizes.append(int(lengths.max(initial=0)))
    places = np.stack(columns, axis=1).astype(np.int64)
    count = int(np.prod(inner, dtype=np.int64))
    deeper = np.stack(np.unravel_index(np.arange(count), inner), axis=1) if inner else np.zeros((1, 0), np.int64)
    indices = np.concatenate([np.repeat(places, count, axis=0), np.tile(deeper, (len(places), 1))], axis=1)
    return indices.astype(np.int64), values.reshape(-1), np.array([*sizes, *inner], np.int64)


@kernel("RaggedTensorToTensor")
def ragged_tensor_to_tensor(
    shape: Array, values: Array, default_value: Array, *partitions: Array, row_partition_types: Sequence[str]
) -> Array:
    """A dense tensor: rows that are short are filled up, those that are long cut, to ``shape`` (-1: as it comes)."""
    first = row_partition_types[0] if row_partition_types else ""
    given = list(zip(row_partition_types, partitions, strict=True))
    if first == "FIRST_DIM_SIZE":
        rows, given = int(partitions[0].item()), given[1:]
    elif first == "ROW_SPLITS":
        rows = partitions[0].size - 1
    else:
        raise RunError(f"Cannot handle row partition type {first or 'none'} as the first")
    count = rows
    levels = []  # for each ragged axis, the parent of each element and its place within it
    sizes = [rows]
    for number, (kind, partition) in enumerate(given):
        if kind == "ROW_SPLITS":
            ends = partition.astype(np.int64)
            lengths = ends[1:] - ends[:-1]
            if bool((lengths < 0).any()) or (partition.size and partition[0] != 0):
                raise RunError(f"Invalid ragged splits {partition.ravel()[:20].tolist()}")
            reserve((int(lengths.sum()),), np.int64)
            parents = np.repeat(np.arange(lengths.size), lengths)
        elif kind == "VALUE_ROWIDS":
            parents = partition.astype(np.int64)
            if parents.size and (parents.min() < 0 or parents.max() >= count or bool((np.diff(parents) < 0).any())):
                raise RunError(f"Invalid row ids {parents.ravel()[:20].tolist()} for {count} rows")
            lengths = np.asarray(np.bincount(parents, minlength=count))
        else:
            raise RunError(f"Cannot handle row partition type {kind} at {number}")
        starts = np.cumsum(lengths) - lengths
        levels.append((parents, np.arange(parents.size) - starts[parents]))
        sizes.append(int(lengths.max(initial=0)))
        count = parents.size
    if count != values.shape[0]:
        raise RunError(f"{values.shape[0]} values for {count} places")
    inner = values.shape[1:]
    wanted = ints(shape) if shape.ndim else ()
    whole = [*sizes, *inner]
    if wanted:
        if len(wanted) != len(whole):
            raise RunError(f"a shape of {len(whole)} dimensions is wanted, not {list(wanted)}")
        whole = [have if want < 0 else want for want, have in zip(wanted, whole, strict=True)]
    result = np.empty(reserve(whole, values.dtype), values.dtype)
    result[...] = default_value
    if tuple(whole[len(sizes) :]) != inner:
        raise RunError(f"values of shape {list(values.shape)} do not fit {whole}")
    columns = [np.arange(rows)]
    for parents, place in levels:
        columns = [*(column[parents] for column in columns), place]
    kept = np.ones(values.shape[0], bool)
    for column, size in zip(columns, whole, strict=False):
        kept &= column < size
    result[tuple(column[kept] for column in columns)] = values[kept]
    return result


@kernel("RaggedFillEmptyRows")
def ragged_fill_empty_rows(
    value_rowids: Array, values: Array, nrows: Array, default_value: Array
) -> tuple[Array, Array, Array, Array]:
    """(row ids, values, which rows were empty, where each value went): empty rows get the default."""
    rows = int(nrows.item())
    ids = value_rowids.astype(np.int64)
    if len(ids) != len(values):
        raise RunError(f"{len(values)} values and {len(ids)} row ids")
    if ids.size and (ids.min() < 0 or ids.max() >= rows):
        raise RunError(f"row ids {ids[:20].tolist()} are outside [0, {rows})")
    empty = np.bincount(ids, minlength=reserve((rows,), np.int64)[0]) == 0
    whole = np.concatenate([ids, np.flatnonzero(empty)])
    order = np.argsort(whole, kind="stable")
    filled = np.concatenate([values, np.full(int(empty.sum()), default_value, values.dtype)])
    went = np.empty(order.size, np.int64)
    went[order] = np.arange(order.size)
    return whole[order], filled[order], empty, went[: ids.size]


@kernel("RaggedFillEmptyRowsGrad")
def ragged_fill_empty_rows_grad(reverse_index_map: Array, grad_values: Array) -> tuple[Array, Array]:
    """(the gradient of the values, that of the default)."""
    places = reverse_index_map.astype(np.int64)
    if places.size and (places.min() < 0 or places.max() >= grad_values.size):
        raise RunError(f"places {places[:20].tolist()} are outside [0, {grad_values.size})")
    rest = np.ones(grad_values.size, bool)
    rest[places] = False
    return grad_values[places], np.asarray(grad_values[rest].sum(), grad_values.dtype)
