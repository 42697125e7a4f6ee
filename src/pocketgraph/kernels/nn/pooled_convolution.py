"""A convolution of few channels, its bias, a rectifier and a max pool in one, and the gradients by weights and bias.

What lies under the windows is laid out apart for each element of the pool's windows, so that pooling compares arrays
that lie in one piece, some positions at a time, which stay in the processor's cache. Which elements were larger than
those before is kept, as bits are: the gradient follows them, and needs no image of the convolution's results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.nn.normalization import bias_add_grad
from pocketgraph.kernels.windows import Window, padded

TOGETHER = 1 << 16
"""Elements of one pooled piece: 256 kB of float32, and as much for each element of a pool's window."""

Make = Callable[[str, tuple[int, ...], Any], Array]
"""Makes an array with any content: (name, shape, NumPy type)."""


class PooledConvolution(NamedTuple):
    """What the gradient needs to know of a layer.

    Attributes:
        patches: what lies under the windows, float32 (elements of a pool's window, elements of a convolution's window
            and 1, positions).
        larger: where the element of the pool's window is larger than all before, bool (elements but the first,
            positions, outputs).
    """

    patches: Array
    larger: Array

    def pieces(self) -> Iterator[slice]:
        """Positions that are taken together."""
        _, positions, outputs = self.larger.shape
        step = max(1, TOGETHER // outputs)
        return (slice(first, first + step) for first in range(0, positions, step))


def fits(x: Array, weights: Array, bias: Array) -> bool:
    """Whether ``pooled_convolution`` takes these: float32, of shapes that belong together and are not empty."""
    return (
        x.ndim == weights.ndim == 4 and bias.ndim == 1
        and x.dtype == weights.dtype == bias.dtype == np.float32
        and x.shape[3] == weights.shape[2] and weights.shape[3] == bias.shape[0]
        and x.size > 0 and weights.size > 0
    )  # fmt: skip


def pooled_convolution(
    x: Array, weights: Array, bias: Array, spans: Sequence[Window], pools: Sequence[Window], make: Make
) -> tuple[Array, PooledConvolution] | None:
    """The largest of each window of the rectified convolution with bias, and what its gradient needs.

    Args:
        x: the images, float32 [batch, rows, columns, channels].
        weights: float32 [rows, columns, channels, outputs].
        bias: float32 [outputs].
        spans: the convolution's windows along rows and columns.
        pools: the pool's, side by side and without a border, over what the convolution gives.
        make: makes the arrays that are kept.

    Returns:
        (float32 [batch, windows…, outputs], what ``pooled_gradients`` takes); None where a result is not finite, so
        that the order of comparisons counts, or an image that no window may see.
    """
    if any(w.output * w.taps < span.output for w, span in zip(pools, spans, strict=True)) and not math.isfinite(
        x.sum()
    ):
        return None
    rows, columns = (w.output for w in pools)
    outputs, positions = weights.shape[-1], len(x) * rows * columns
    count = math.prod(w.taps for w in pools)
    patches = _patches(x, spans, pools, make)
    matrix = np.concatenate((weights.reshape(-1, outputs), bias[None]))  # numbers that it makes equal are equal
    pooled = np.empty(reserve((positions, outputs), np.float32), np.float32)
    kept = PooledConvolution(patches, make("larger", (count - 1, positions, outputs), np.bool_))
    step = max(1, TOGETHER // outputs)
    rooms = np.empty((2, min(step, positions), outputs), np.float32)
    for some in kept.pieces():
        best = pooled[some]
        np.matmul(patches[0][:, some].T, matrix, out=best)
        room = rooms[0][: len(best)]
        for place in range(1, count):
            np.matmul(patches[place][:, some].T, matrix, out=room)
            np.greater(room, best, out=kept.larger[place - 1, some])
            np.maximum(best, room, out=best)
        np.maximum(best, 0, out=best)
        if not math.isfinite(best.sum()):
            return None
    return pooled.reshape(len(x), rows, columns, outputs), kept


def pooled_gradients(kept: PooledConvolution, pooled: Array, slopes: Array) -> tuple[Array, Array] | None:
    """The gradients by weights and bias.

    Args:
        kept: what ``pooled_convolution`` gave.
        pooled: the result that it gave, float32 [batch, windows…, outputs].
        slopes: the gradient by that.

    Returns:
        (float32 [elements of a window, outputs], float32 [outputs]); None where a slope is not finite.
    """
    patches, (_, positions, outputs) = kept.patches[:, :-1], kept.larger.shape
    flat, results = slopes.reshape(positions, outputs), pooled.reshape(positions, outputs)
    by_bias = np.zeros(outputs, np.float64)
    total = np.zeros((patches.shape[1], outputs), np.float32)
    rooms = np.empty((2, min(max(1, TOGETHER // outputs), positions), outputs), np.float32)
    for some in kept.pieces():
        left, part = (room[: len(flat[some])] for room in rooms)
        left[...] = flat[some]
        if not math.isfinite(left.sum()) and not np.isfinite(left).all():
            return None
        left *= np.greater(results[some], 0)
        by_bias += bias_add_grad(left)
        for place in range(len(kept.larger), 0, -1):  # of equals the first counts
            np.multiply(left, kept.larger[place - 1, some], out=part)
            left -= part
            total += patches[place][:, some] @ part
        total += patches[0][:, some] @ left
    return total, by_bias.astype(np.float32)


def _patches(x: Array, spans: Sequence[Window], pools: Sequence[Window], make: Make) -> Array:
    """What lies under the convolution's windows, for each element of the pool's: [elements of the pool's window,
    elements of a window and 1, positions]."""
    planes = np.ascontiguousarray(np.moveaxis(padded(x, spans), -1, 0))  # channels first
    sizes = len(x), *(w.output for w in pools)
    elements = [(*place, c) for place in np.ndindex(*(w.taps for w in spans)) for c in range(len(planes))]
    shape = math.prod(w.taps for w in pools), len(elements) + 1, *sizes
    found = make("patches", reserve(shape, np.float32), np.float32)
    found[:, -1] = 1
    for number, start in enumerate(np.ndindex(*(w.taps for w in pools))):
        for element, (*place, channel) in enumerate(elements):
            where = (
                slice(None),
                *(
                    _every(conv.stride * first + conv.dilation * tap, conv.stride * pool.stride, pool.output)
                    for first, tap, conv, pool in zip(start, place, spans, pools, strict=True)
                ),
            )
            found[number, element] = planes[channel][where]
    return found.reshape(*shape[:2], -1)


def _every(first: int, step: int, count: int) -> slice:
    return slice(first, first + step * (count - 1) + 1, step)
