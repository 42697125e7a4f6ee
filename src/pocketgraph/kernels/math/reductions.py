"""Sums, products, extremes and means over axes; positions of extremes; running sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.arrays import Array, axis_of, ints, is_float, least, most, widened
from pocketgraph.kernels.math.arithmetic import truncated_quotient
from pocketgraph.kernels.registry import kernel


def axes_of(axes: Array, rank: int) -> tuple[int, ...]:
    """The axes to reduce, counted from the front.

    Raises:
        ValueError: one is out of range or is given twice.
    """
    found = []
    for axis in ints(axes):
        if not -rank <= axis < rank:
            raise ValueError(f"Invalid reduction dimension {axis} for a tensor of rank {rank}")
        found.append(axis % rank)
    if len(set(found)) != len(found):
        raise ValueError(f"Invalid reduction arguments: the axes {found} contain one twice")
    return tuple(found)


def _accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Sums of floats are kept in double and rounded once, so that their order does not matter."""
    if is_float(dtype):
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if dtype.kind == "c" else dtype


FEWEST_ADDED, MOST_KEPT = 1 << 12, 1 << 9
"""Elements that are added up, and those of a last axis that stays, from which and up to which np.einsum is quicker than
np.sum: twice as quick for the means of an image's channels."""


def _total(input: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """The sums over some axes, in the accumulators' type."""
    rank = input.ndim
    if (
        input.dtype == np.float32
        and axes
        and rank - 1 not in axes
        and input.shape[-1] <= MOST_KEPT
        and input.size >= FEWEST_ADDED
    ):
        kept = [axis for axis in range(rank) if axis not in axes]
        sums = np.einsum(input, range(rank), kept, dtype=np.float64, casting="unsafe")
        return sums.reshape([1 if a in axes else n for a, n in enumerate(input.shape)]) if keep_dims else sums
    return np.sum(widened(input), axis=axes, keepdims=keep_dims, dtype=_accumulator(input.dtype))


@kernel("Sum")
def sum_(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    axes = axes_of(axis, input.ndim)
    return np.asarray(_total(input, axes, keep_dims)).astype(input.dtype)


@kernel("Prod")
def prod(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    axes = axes_of(axis, input.ndim)
    total = np.prod(widened(input), axis=axes, keepdims=keep_dims, dtype=_accumulator(input.dtype))
    return np.asarray(total).astype(input.dtype)


@kernel("Mean")
def mean(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    """The mean; of integers it is rounded towards zero, of nothing it is NaN (integers: 0)."""
    axes = axes_of(axis, input.ndim)
    count = math.prod([input.shape[a] for a in axes])
    if input.dtype.kind in "iu":
        wide = np.uint64 if input.dtype.kind == "u" else np.int64
        total = np.asarray(np.sum(input, axis=axes, keepdims=keep_dims, dtype=wide))
        return np.asarray(truncated_quotient(total, np.asarray(max(count, 1), wide))).astype(input.dtype)
    sums = _total(input, axes, keep_dims)
    return np.asarray(np.true_divide(sums, np.float64(count))).astype(input.dtype)


def _extreme(input: Array, axis: Array, keep_dims: bool, largest: bool) -> Array:
    axes = axes_of(axis, input.ndim)
    wide = widened(input)
    worst, function = (least(wide.dtype), np.max) if largest else (most(wide.dtype), np.min)
    return np.asarray(function(wide, axis=axes, keepdims=keep_dims, initial=worst)).astype(input.dtype)


@kernel("Max")
def max_(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    """The largest; of nothing -infinity or the type's lowest. A NaN makes the result NaN."""
    return _extreme(input, axis, keep_dims, True)


@kernel("Min")
def min_(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    """The smallest; of nothing infinity or the type's highest. A NaN makes the result NaN."""
    return _extreme(input, axis, keep_dims, False)


@kernel("All")
def all_(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    return np.asarray(np.all(input, axis=axes_of(axis, input.ndim), keepdims=keep_dims))


@kernel("Any")
def any_(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    return np.asarray(np.any(input, axis=axes_of(axis, input.ndim), keepdims=keep_dims))


@kernel("EuclideanNorm")
def euclidean_norm(input: Array, axis: Array, *, keep_dims: bool = False) -> Array:
    """The root of the sum of squares; integers overflow as those of their type do."""
    axes = axes_of(axis, input.ndim)
    if input.dtype.kind in "iu":
        squares = np.sum(input * input, axis=axes, keepdims=keep_dims, dtype=input.dtype)
        return np.asarray(np.sqrt(np.maximum(squares, 0).astype(np.float64))).astype(input.dtype)
    wide = np.abs(widened(input)).astype(np.float64)
    total = np.sum(wide * wide, axis=axes, keepdims=keep_dims)
    return np.asarray(np.sqrt(total)).astype(input.dtype)


def _position(input: Array, dimension: Array, output_type: DType, largest: bool) -> Array:
    axis = axis_of(dimension, input.ndim, "dimension")
    rest = input.shape[:axis] + input.shape[axis + 1 :]
    if input.shape[axis] == 0:
        if 0 not in rest:
            raise ValueError(f"Reduction axis {axis} is empty in shape {list(input.shape)}")
        return np.zeros(rest, dtype=output_type.numpy)
    wide = widened(input)
    if wide.dtype.kind == "f":
        wide = np.where(np.isnan(wide), wide.dtype.type(-np.inf if largest else np.inf), wide)
    found = np.argmax(wide, axis=axis) if largest else np.argmin(wide, axis=axis)
    return np.asarray(found).astype(output_type.numpy)


@kernel("ArgMax")
def arg_max(input: Array, dimension: Array, *, output_type: DType = INT64) -> Array:
    """The first position of the largest; NaN is never the largest."""
    return _position(input, dimension, output_type, True)


@kernel("ArgMin")
def arg_min(input: Array, dimension: Array, *, output_type: DType = INT64) -> Array:
    """The first position of the smallest; NaN is never the smallest."""
    return _position(input, dimension, output_type, False)


def _running(x: Array, axis: Array, exclusive: bool, reverse: bool, function: Any, neutral: Any) -> Array:
    along = axis_of(axis, x.ndim)
    dtype = x.dtype
    values = widened(x)
    if reverse:
        values = np.flip(values, along)
    totals = function(values, along)
    if exclusive:
        first = np.full_like(np.take(totals, [0], axis=along), neutral) if x.shape[along] else totals
        totals = np.concatenate([first, np.take(totals, range(x.shape[along] - 1), axis=along)], axis=along)
    if reverse:
        totals = np.flip(totals, along)
    return np.asarray(np.ascontiguousarray(totals).astype(dtype).reshape(x.shape))


@kernel("Cumsum")
def cumsum(x: Array, axis: Array, *, exclusive: bool = False, reverse: bool = False) -> Array:
    return _running(x, axis, exclusive, reverse, lambda v, a: np.cumsum(v, axis=a, dtype=v.dtype), 0)


@kernel("Cumprod")
def cumprod(x: Array, axis: Array, *, exclusive: bool = False, reverse: bool = False) -> Array:
    return _running(x, axis, exclusive, reverse, lambda v, a: np.cumprod(v, axis=a, dtype=v.dtype), 1)


def _log_sums(values: Array, axis: int) -> Array:
    """The logarithms of running sums of exponentials, as TensorFlow's comparisons have them."""
    rows = np.moveaxis(values, axis, 0)
    totals = np.where(np.isnan(rows), -np.inf, rows).astype(rows.dtype)  # the first: no number is less than no sum
    for place in range(1, rows.shape[0]):
        so_far, new = totals[place - 1], rows[place]
        least, most = np.where(new < so_far, new, so_far), np.where(so_far < new, new, so_far)
        added = np.log1p(np.exp(least - most)) + most
        totals[place] = np.where(most == -np.inf, most, added)
    return np.moveaxis(totals, 0, axis)


@kernel("CumulativeLogsumexp")
def cumulative_logsumexp(x: Array, axis: Array, *, exclusive: bool = False, reverse: bool = False) -> Array:
    """log(e^a + e^b + …) of what lies before and at each element; a NaN that comes to a number counts as that one."""
    return _running(x, axis, exclusive, reverse, _log_sums, -np.inf)


@kernel("L2Loss")
def l2_loss(t: Array) -> Array:
    """Half the sum of squares."""
    wide = t.astype(np.float64)
    return np.asarray(np.sum(wide * wide) / 2).astype(t.dtype)
