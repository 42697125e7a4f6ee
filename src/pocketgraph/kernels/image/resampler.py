"""Pictures read at given places."""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.registry import kernel


@kernel("Resampler", "Addons>Resampler")
def resampler(data: Array, warp: Array) -> Array:
    """(batch, …, channels) in the type of ``data`` (batch, rows, columns, channels): bilinear, with zeros outside.

    Args:
        data: half, float or double.
        warp: (batch, …, 2) in the same type: column and row of each place.

    Raises:
        RunError: shapes that do not fit.
    """
    if data.ndim != 4:
        raise RunError(f"Unsupported data shape, needs rank 4: {list(data.shape)}")
    if warp.ndim < 2 or warp.shape[-1] != 2 or warp.shape[0] != data.shape[0]:
        raise RunError(f"warp of shape {list(warp.shape)} for data of shape {list(data.shape)}")
    batch, height, width, depth = data.shape
    kind = data.dtype
    reserve((*warp.shape[:-1], depth), kind)
    places = warp.reshape(batch, math.prod(warp.shape[1:-1]), 2)
    x, y = places[..., 0], places[..., 1]
    inside = (x > -1) & (y > -1) & (x < width) & (y < height)
    x, y = np.where(inside, x, kind.type(0)), np.where(inside, y, kind.type(0))
    left, top = np.floor(x), np.floor(y)
    right, bottom = left + kind.type(1), top + kind.type(1)
    rows = np.arange(batch)[:, None]

    def read(row: Array, column: Array) -> Array:
        down, along = row.astype(np.int64), column.astype(np.int64)
        there = (down >= 0) & (down < height) & (along >= 0) & (along < width)
        if not data.size:
            return np.zeros((*there.shape, depth), kind)
        return np.where(there[..., None], data[rows, np.where(there, down, 0), np.where(there, along, 0)], kind.type(0))

    before, above = (right - x)[..., None], (bottom - y)[..., None]
    after, below = kind.type(1) - before, kind.type(1) - above
    found = before * above * read(top, left) + after * below * read(bottom, right)
    found = found + before * below * read(bottom, left) + after * above * read(top, right)
    found = np.where(inside[..., None], found, kind.type(0))
    return np.asarray(found, kind).reshape(*warp.shape[:-1], depth)
