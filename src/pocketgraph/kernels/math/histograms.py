"""Counts of values in bins, and which bin a value lies in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.kernels.arrays import Array, integer, reserve
from pocketgraph.kernels.registry import kernel


@kernel("Bucketize")
def bucketize(input: Array, *, boundaries: Sequence[float]) -> Array:
    """The number of the interval between boundaries that each element lies in."""
    limits = np.array(boundaries, dtype=np.float32)
    return np.asarray(np.searchsorted(limits, input, side="right")).astype(np.int32)


@kernel("BucketizeWithInputBoundaries")
def bucketize_with_input_boundaries(input: Array, boundaries: Array) -> Array:
    """The same with boundaries that are computed."""
    return bucketize(input, boundaries=boundaries.tolist())


@kernel("DenseBincount")
def dense_bincount(arr: Array, size: Array, weights: Array, *, binary_output: bool = False) -> Array:
    """How often (or with what summed weight) each value below ``size`` occurs; rank 2: row by row."""
    count = integer(size)
    if count < 0 or bool(np.any(arr < 0)):
        raise ValueError("Input arr and size must be non-negative")
    kind = weights.dtype
    rows = arr.reshape(1, -1) if arr.ndim < 2 else arr
    result = np.zeros(reserve((rows.shape[0], count), kind), dtype=kind)
    for row, values in enumerate(rows):
        inside = values < count
        amounts = weights.reshape(rows.shape)[row][inside] if weights.size else np.ones(int(inside.sum()), kind)
        if binary_output:
            result[row, values[inside]] = 1
        else:
            np.add.at(result[row], values[inside], amounts)
    return result.reshape(count) if arr.ndim < 2 else result


@kernel("Bincount")
def bincount(arr: Array, size: Array, weights: Array) -> Array:
    return dense_bincount(arr.ravel(), size, weights.ravel())


@kernel("HistogramFixedWidth")
def histogram_fixed_width(values: Array, value_range: Array, nbins: Array, *, dtype: DType = INT32) -> Array:
    """Counts in ``nbins`` equal bins; what lies outside the range goes into the first or last."""
    count = integer(nbins)
    low, high = (float(v) for v in value_range.ravel())
    if count <= 0 or not low < high:
        raise ValueError(f"{count} bins over {low}..{high}")
    kind = dtype.numpy
    step = (high - low) / count
    bins = np.clip(np.floor((values.astype(np.float64).ravel() - low) / step), 0, count - 1).astype(np.int64)
    return np.bincount(bins, minlength=count).astype(kind)
