"""Order and sameness: the largest k, unique values, what is in one list and not in another."""

from __future__ import annotations

import bisect
from typing import Any, Literal

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.kernels.arrays import Array, axis_of, integer, ints, is_float, widened
from pocketgraph.kernels.registry import kernel

FEW = 256  # numbers that Python's own dictionaries tell apart more quickly than NumPy sorts them


def largest(values: Array, k: int) -> tuple[Array, Array]:
    """(values, positions) of the k largest along the last axis, largest first, of equals the first first.

    Raises:
        ValueError: there are fewer than k.
    """
    if values.ndim < 1 or not 0 <= k <= values.shape[-1]:
        raise ValueError(f"input must have at least {k} columns, its shape is {list(values.shape)}")
    size = values.shape[-1]
    wide = widened(values)
    if wide.ndim == 1 and k > 0 and size > 4 * k + 64:  # most are out of the question, which is quicker to tell
        best = np.partition(wide, size - k)[size - k :]
        some = np.flatnonzero(wide >= best[0])
        if k <= some.size < size and not np.isnan(best.max()):  # NaN counts as the largest
            order = some[largest(wide[some], k)[1]]
            return values[order], order
    turned = wide[..., ::-1]
    order = size - 1 - np.argsort(turned, axis=-1, kind="stable")[..., ::-1][..., :k]
    return np.take_along_axis(values, order, axis=-1), order


@kernel("TopK")
def top_k(input: Array, *, k: int) -> tuple[Array, Array]:
    values, order = largest(input, k)
    return values, order.astype(np.int32)


@kernel("TopKV2")
def top_k_v2(input: Array, k: Array, *, index_type: DType = INT32) -> tuple[Array, Array]:
    values, order = largest(input, integer(k))
    return values, order.astype(index_type.numpy)


@kernel("ApproxTopK")
def approx_top_k(input: Array, *, k: int, reduction_dimension: int = -1, is_max_k: bool = True) -> tuple[Array, Array]:
    """The k largest (smallest with ``is_max_k`` False) along an axis, all of them right, as on TensorFlow's CPUs."""
    axis = axis_of(reduction_dimension, input.ndim)
    turned = np.moveaxis(input, axis, -1)
    if is_max_k:
        values, order = largest(turned, k)
    else:
        order = largest(-widened(turned), k)[1]
        values = np.take_along_axis(turned, order, axis=-1)
    return np.moveaxis(values, -1, axis), np.moveaxis(order, -1, axis).astype(np.int32)


@kernel("InTopK")
def in_top_k(predictions: Array, targets: Array, *, k: int) -> Array:
    """Whether the target's prediction is among the k largest; equals of the k-th count as in."""
    rows, classes = predictions.shape
    if targets.shape != (rows,):
        raise ValueError(f"shapes that do not fit: {list(predictions.shape)} and {list(targets.shape)}")
    inside = (targets >= 0) & (targets < classes)
    if not classes:
        return np.asarray(inside)
    chosen = np.take_along_axis(predictions, np.where(inside, targets, 0)[:, None].astype(np.int64), axis=1)
    finite = np.isfinite(chosen[:, 0]) & ~np.any(~np.isfinite(predictions), axis=1)
    return np.asarray(inside & finite & ((predictions > chosen).sum(axis=1) < k))


kernel("InTopKV2")(lambda predictions, targets, k: in_top_k(predictions, targets, k=integer(k)))


@kernel("NthElement")
def nth_element(input: Array, n: Array, *, reverse: bool = False) -> Array:
    """The n-th smallest (largest when reversed) of each row, counted from 0."""
    place = integer(n)
    if input.ndim < 1 or not 0 <= place < input.shape[-1]:
        raise ValueError(f"Input must have last dimension > n = {place}, its shape is {list(input.shape)}")
    return np.asarray(np.sort(input, axis=-1)[..., -1 - place if reverse else place])


def uniques(x: Array) -> tuple[Array, Array, Array]:
    """(distinct elements in order of first occurrence, for each element its place among them, counts)."""
    if x.dtype.kind == "O":
        table: dict[object, int] = {}
        places = np.array([table.setdefault(item, len(table)) for item in x.tolist()], dtype=np.int64)
        found = np.empty(len(table), dtype=object)
        found[:] = list(table)
        return found, places, np.bincount(places, minlength=len(table))
    if x.size <= FEW and x.dtype.kind in "iu":
        seen: dict[int, int] = {}
        numbers = np.array([seen.setdefault(number, len(seen)) for number in x.tolist()], dtype=np.int64)
        return np.array(list(seen), x.dtype), numbers, np.bincount(numbers, minlength=len(seen))
    _, first, inverse, counts = np.unique(
        _keys(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return x[first[order]], rank[inverse.reshape(-1)], counts[order]


def _keys(x: Array) -> Array:
    """What is the same for the same elements. TensorFlow finds 16-bit floats by their bits, so 0 and -0 are two."""
    wide = widened(x)
    if x.dtype.itemsize != 2 or wide.dtype.kind != "f":
        return wide
    return np.where(np.isnan(wide), wide, x.view(np.uint16).astype(np.float64))


def _flat(x: Array) -> Array:
    if x.ndim != 1:
        raise ValueError(f"unique expects a 1D vector, not the shape {list(x.shape)}")
    return x


@kernel("Unique")
def unique(x: Array, *, out_idx: DType = INT32) -> tuple[Array, Array]:
    if x.ndim == 1 and x.size <= FEW and x.dtype.kind in "iu":
        table: dict[int, int] = {}
        numbers = [table.setdefault(number, len(table)) for number in x.tolist()]
        if len(table) == len(numbers):
            return x, np.arange(len(numbers), dtype=out_idx.numpy)
        return np.array(list(table), x.dtype), np.array(numbers, out_idx.numpy)
    values, places, _ = uniques(_flat(x))
    return values, places.astype(out_idx.numpy)


@kernel("UniqueWithCounts")
def unique_with_counts(x: Array, *, out_idx: DType = INT32) -> tuple[Array, Array, Array]:
    values, places, counts = uniques(_flat(x))
    return values, places.astype(out_idx.numpy), counts.astype(out_idx.numpy)


def _unique_slices(x: Array, axis: Array) -> tuple[Array, Array, Array]:
    axes = ints(axis)
    if not axes:
        return uniques(_flat(x))
    if len(axes) > 1:
        raise ValueError(f"one axis is wanted, not {list(axes)}")
    along = axis_of(axes[0], x.ndim)
    table: dict[object, int] = {}
    slices = np.moveaxis(x, along, 0)
    # as numbers: 0 and -0 are the same, and no NaN is that of another slice
    wide = _keys(slices) if x.ndim == 1 else widened(slices)
    keys = [tuple(wide[i : i + 1].ravel().tolist()) for i in range(wide.shape[0])]
    places = np.array([table.setdefault(key, len(table)) for key in keys], dtype=np.int64)
    _, first = np.unique(places, return_index=True)
    counts = np.bincount(places, minlength=len(table))
    return np.ascontiguousarray(np.moveaxis(slices[first], 0, along)), places, counts


@kernel("UniqueV2")
def unique_v2(x: Array, axis: Array, *, out_idx: DType = INT32) -> tuple[Array, Array]:
    values, places, _ = _unique_slices(x, axis)
    return values, places.astype(out_idx.numpy)


@kernel("UniqueWithCountsV2")
def unique_with_counts_v2(x: Array, axis: Array, *, out_idx: DType = INT32) -> tuple[Array, Array, Array]:
    values, places, counts = _unique_slices(x, axis)
    return values, places.astype(out_idx.numpy), counts.astype(out_idx.numpy)


@kernel("ListDiff")
def list_diff(x: Array, y: Array, *, out_idx: DType = INT32) -> tuple[Array, Array]:
    """What is in x and not in y, and its places in x. 16-bit floats are told apart by their bits, 0 from -0 too."""
    if x.dtype.kind in "fV" and x.dtype.itemsize == 2:
        known = set(y.view(np.uint16).tolist())
        places = [i for i, bits in enumerate(x.view(np.uint16).tolist()) if bits not in known or np.isnan(x[i])]
    else:
        known = set(y.tolist())
        places = [i for i, item in enumerate(x.tolist()) if item not in known]
    return x[places], np.array(places, dtype=out_idx.numpy)


@kernel("LowerBound")
def lower_bound(sorted_inputs: Array, values: Array, *, out_type: DType = INT32) -> Array:
    return _bounds(sorted_inputs, values, "left", out_type)


@kernel("UpperBound")
def upper_bound(sorted_inputs: Array, values: Array, *, out_type: DType = INT32) -> Array:
    return _bounds(sorted_inputs, values, "right", out_type)


def _bounds(sorted_inputs: Array, values: Array, side: Literal["left", "right"], out_type: DType) -> Array:
    """Where each value goes in its row, by halving it, also where it is not sorted. NumPy's search tries other places
    than TensorFlow's and Python's, and takes NaN for the largest number, which there compares with none."""
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    rows: list[Any] = []
    for row, wanted in zip(sorted_inputs, values, strict=True):
        has_nan = row.dtype.kind not in "iub" and (np.isnan(row).any() or np.isnan(wanted).any())
        if has_nan or (row[1:] < row[:-1]).any():
            listed = row.tolist()
            rows.append([find(listed, value) for value in wanted.tolist()])
        else:
            rows.append(np.searchsorted(row, wanted, side=side))
    return np.asarray(np.array(rows, dtype=out_type.numpy).reshape(values.shape))


@kernel("XlaSort")
def xla_sort(input: Array) -> Array:
    """Sorted along the last axis, smallest first; of floats -NaN first and NaN last, and -0 before 0."""
    if input.ndim == 0 or not (input.dtype.kind in "biu" or is_float(input.dtype)):
        raise ValueError(f"real numbers with an axis are sorted, not {input.dtype}{list(input.shape)}")
    if input.dtype.kind in "biu":
        return np.sort(input, axis=-1)
    return _in_order_of_integers(np.sort(_in_order_of_integers(input.view(f"i{input.dtype.itemsize}")))).view(
        input.dtype
    )


def _in_order_of_integers(bits: Array) -> Array:
    """Floats' bits as integers of the same order, and these as bits again: below 0 all but the sign are turned over."""
    return np.asarray(bits ^ (bits >> 8 * bits.itemsize - 1 & np.iinfo(bits.dtype).max))
