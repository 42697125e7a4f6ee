"""Reductions by group: the segment ops."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pocketgraph.kernels.array.gather_scatter import check_indices
from pocketgraph.kernels.arrays import Array, highest, integer, least, lowest, most, reserve, widened
from pocketgraph.kernels.math.arithmetic import truncated_quotient
from pocketgraph.kernels.registry import kernel

WHOLE = (np.dtype(np.int32), np.dtype(np.int64))
FEW = 64  # group numbers that are looked through more quickly one by one


@dataclass(frozen=True)
class _Reduction:
    """How a group is reduced.

    Attributes:
        function: the NumPy function of two operands.
        start: what a group starts from, by dtype.
    """

    function: np.ufunc
    start: Callable[[np.dtype[Any]], Any]


SUM, PROD = _Reduction(np.add, lambda _: 0), _Reduction(np.multiply, lambda _: 1)
MIN, MAX = _Reduction(np.minimum, highest), _Reduction(np.maximum, lowest)


def grouped(reduction: _Reduction, data: Array, ids: Array, count: int, beginning: float | None = None) -> Array:
    """``data`` (its first axes those of ``ids``) reduced by group number; negative groups are dropped."""
    if data.shape[: ids.ndim] != ids.shape:
        raise ValueError(f"shapes that do not fit: data {list(data.shape)}, segment ids {list(ids.shape)}")
    row = data.shape[ids.ndim :]
    rows, groups = data.reshape(-1, *row) if data.size else data.reshape(ids.size, *row), ids.ravel()
    check_indices(groups[groups >= 0], count)
    wide = widened(rows)
    if wide.dtype == np.float32 and reduction in (SUM, PROD):
        wide = wide.astype(np.float64)
    start = reduction.start(data.dtype) if beginning is None else beginning
    result = np.full(reserve((count, *row), wide.dtype), start, dtype=wide.dtype)
    kept = groups >= 0
    reduction.function.at(result, groups[kept].astype(np.int64), wide[kept])
    return result.astype(data.dtype)


def sorted_groups(reduction: _Reduction, data: Array, ids: Array, count: int | None = None) -> Array:
    """The ops whose ids are sorted: as many rows as the last id says, 1 for products without rows and else 0."""
    numbers = ids.ravel()
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise ValueError(f"segment_ids should be the same size as dimension 0 of input, {list(ids.shape)}")
    if bool(np.any(np.diff(numbers) < 0)) or (numbers.size and numbers[0] < 0):
        raise ValueError("segment ids are not increasing")
    total = (int(numbers[-1]) + 1 if numbers.size else 0) if count is None else count
    beginning = {MIN: most, MAX: least}.get(reduction, reduction.start)(data.dtype)
    result = grouped(reduction, data, ids, total, beginning)
    result[np.bincount(numbers.astype(np.int64), minlength=total)[:total] == 0] = int(reduction is PROD)
    return result


def _sorted_kernel(reduction: _Reduction) -> Callable[[Array, Array], Array]:
    def run(data: Array, segment_ids: Array) -> Array:
        quick = None
        if reduction is SUM:
            plain = in_runs(data, segment_ids, None, "sum") if data.dtype == np.float32 else None
            quick = _few_numbers(data, segment_ids) if plain is None else plain
        return sorted_groups(reduction, data, segment_ids) if quick is None else quick

    return run


def _unsorted_kernel(reduction: _Reduction) -> Callable[[Array, Array, Array], Array]:
    def run(data: Array, segment_ids: Array, num_segments: Array) -> Array:
        return grouped(reduction, data, segment_ids, integer(num_segments))

    return run


for _name, _reduction in (("Sum", SUM), ("Prod", PROD), ("Min", MIN), ("Max", MAX)):
    kernel(f"Segment{_name}")(_sorted_kernel(_reduction))
    kernel(f"UnsortedSegment{_name}")(_unsorted_kernel(_reduction))


def _few_numbers(data: Array, ids: Array) -> Array | None:
    """Sums of a few whole numbers in sorted groups, added by Python; None: it is not that plain."""
    if data.dtype not in WHOLE or data.ndim != 1 or ids.shape != data.shape or not 0 < ids.size <= FEW:
        return None
    groups = ids.tolist()
    if groups[0] < 0 or groups[-1] >= FEW or groups != sorted(groups):
        return None
    sums = [0] * (groups[-1] + 1)
    for group, number in zip(groups, data.tolist(), strict=True):
        sums[group] += number
    try:
        return np.array(sums, data.dtype)
    except OverflowError:
        return None


def in_runs(rows: Array, ids: Array, count: int | None, how: str) -> Array | None:
    """Sums, means or sums over roots of float32 rows in sorted groups, run by run; None: it is not that plain.

    The same numbers as group by group: terms are added in double, in their order, and rounded once.
    """
    if rows.dtype != np.float32 or ids.ndim != 1 or rows.shape[:1] != ids.shape or not rows.size:
        return None
    if ids.size <= FEW:
        groups = ids.tolist()
        size = len(groups)
        if groups == list(range(size)) and (count is None or count == size):
            return rows
        starts = [place for place in range(size) if not place or groups[place] != groups[place - 1]]
        present = [groups[place] for place in starts]
        is_sorted = present == sorted(present)
    else:
        starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist()]
        present = ids[starts].tolist()
        is_sorted = bool((ids[1:] >= ids[:-1]).all())
    total = present[-1] + 1 if count is None else count
    if not is_sorted or present[0] < 0 or present[-1] >= total:
        return None
    if len(present) == ids.size:  # one row each, some without any
        result = np.zeros(reserve((total, *rows.shape[1:]), rows.dtype), np.float32)
        result[present] = rows
        return result
    sums = np.add.reduceat(rows, starts, 0, np.float64)
    if how != "sum":
        sizes = np.subtract([*starts[1:], ids.size], starts).reshape(-1, *[1] * (rows.ndim - 1))
        sums /= np.sqrt(sizes) if how == "root" else sizes
    if len(present) == total:
        return sums.astype(np.float32)
    result = np.zeros(reserve((total, *rows.shape[1:]), rows.dtype), np.float32)
    result[present] = sums
    return result


def _averaged(data: Array, ids: Array, count: int | None, root: bool) -> Array:
    quick = in_runs(data, ids, count, "root" if root else "mean")
    if quick is not None:
        return quick
    totals = sorted_groups(SUM, data, ids, count)
    sizes = np.bincount(ids.astype(np.int64), minlength=totals.shape[0])[: totals.shape[0]]
    divisor = np.maximum(sizes, 1).reshape(-1, *[1] * (totals.ndim - 1))
    if totals.dtype.kind in "iu" and not root:
        wide = totals if totals.dtype == np.uint64 else totals.astype(np.int64)
        return np.asarray(truncated_quotient(wide, divisor.astype(wide.dtype))).astype(data.dtype)
    double = np.complex128 if totals.dtype.kind == "c" else np.float64
    wide = totals.astype(double) / (np.sqrt(divisor) if root else divisor)
    return np.asarray(wide).astype(data.dtype)


@kernel("SegmentMean")
def segment_mean(data: Array, segment_ids: Array) -> Array:
    return _averaged(data, segment_ids, None, False)


def _chosen(data: Array, indices: Array) -> Array:
    check_indices(indices, data.shape[0])
    return data.take(indices, 0) if data.flags.c_contiguous and indices.ndim else data[indices.astype(np.int64)]


def _summed(rows: Array, ids: Array, count: int | None) -> Array:
    quick = in_runs(rows, ids, count, "sum")
    return sorted_groups(SUM, rows, ids, count) if quick is None else quick


def _register_sparse(op: str, reduced: Callable[[Array, Array, int | None], Array]) -> None:
    """A reduction of chosen rows, with and without the number of its groups."""

    @kernel(op)
    def sparse_segments(data: Array, indices: Array, segment_ids: Array) -> Array:
        return reduced(_chosen(data, indices), segment_ids, None)

    @kernel(f"{op}WithNumSegments")
    def counted_sparse_segments(data: Array, indices: Array, segment_ids: Array, num_segments: Array) -> Array:
        return reduced(_chosen(data, indices), segment_ids, integer(num_segments))


_register_sparse("SparseSegmentSum", _summed)
_register_sparse("SparseSegmentMean", partial(_averaged, root=False))
_register_sparse("SparseSegmentSqrtN", partial(_averaged, root=True))


@kernel("UnsortedSegmentJoin")
def unsorted_segment_join(inputs: Array, segment_ids: Array, num_segments: Array, *, separator: str = "") -> Array:
    """The texts of each group joined, in their order."""
    count, mark = integer(num_segments), separator.encode()
    if count < 0:
        raise ValueError(f"Number of segments must be at least 0, not {count}")
    if not segment_ids.ndim or inputs.shape[: segment_ids.ndim] != segment_ids.shape:
        raise ValueError(f"shapes that do not fit: {list(inputs.shape)}, segment ids {list(segment_ids.shape)}")
    row = inputs.shape[segment_ids.ndim :]
    reserve((count, *row), np.int64)
    rows: list[list[Array]] = [[] for _ in range(count)]
    flat = inputs.reshape(segment_ids.size, *row)
    for place, group in enumerate(segment_ids.ravel().tolist()):
        if not 0 <= group < count:
            raise ValueError(f"segment_ids are not less than num_segments, or negative: {group} of {count}")
        if group >= 0:
            rows[group].append(flat[place : place + 1].ravel())
    result = np.full((count, int(np.prod(row, dtype=np.int64))), b"", object)
    for group, members in enumerate(rows):
        for place in range(result.shape[1]):
            items = itertools.dropwhile(lambda item: not item, (member[place] for member in members))
            result[group, place] = mark.join(items)  # what is empty before the first text has no separator
    return np.asarray(result.reshape(count, *row))
