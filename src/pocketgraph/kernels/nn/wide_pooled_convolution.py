"""A convolution of many channels, its bias, a rectifier and a max pool, and all gradients of that, a few images at a
time.

What the convolution gives stays in the processor's cache until it is pooled, and the gradient by that until those by
weights and images are computed of it. Neither is kept: which elements of a pool's windows were larger than those before
tells where the gradient goes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.nn.adjacent_windows import elements_of
from pocketgraph.kernels.nn.convolution_gradients import ByFilter, backprop_filter, backprop_input
from pocketgraph.kernels.nn.normalization import bias_add_grad
from pocketgraph.kernels.nn.pooled_convolution import Make
from pocketgraph.kernels.nn.rectified_convolution import Convolve, rectified_convolution, together
from pocketgraph.kernels.recycled_arrays import aligned
from pocketgraph.kernels.windows import Window


def wide_pooled_convolution(
    x: Array,
    weights: Array,
    bias: Array,
    spans: Sequence[Window],
    pools: Sequence[Window],
    make: Make,
    convolve_quickly: Convolve | None = None,
) -> tuple[Array, Array] | None:
    """The largest of each window of the rectified convolution with bias.

    Args:
        x, weights, bias, spans, pools, make: as ``pooled_convolution`` has them.
        convolve_quickly: computes the rectified convolution with bias; by default NumPy does.

    Returns:
        (float32 [batch, windows…, outputs], where an element of a pool's window is larger than all before, bool
        [elements but the first, batch, windows…, outputs]); None where a result is not finite.
    """
    shape = len(x), *(w.output for w in spans), weights.shape[-1]
    sizes = len(x), *(w.output for w in pools), weights.shape[-1]
    pooled: Array = np.empty(reserve(sizes, np.float32), np.float32)
    larger = make("larger", (math.prod(w.taps for w in pools) - 1, *sizes), np.bool_)
    room = aligned((together(shape), *shape[1:]), np.float32)
    for images in _groups(shape):
        best, made = pooled[images], room[: len(pooled[images])]
        rectified_convolution("Conv2D", x[images], weights, bias, spans, made, "Relu", convolve_quickly)
        first, *others = elements_of(made, pools)
        best[...] = first
        for place, element in enumerate(others):
            np.greater(element, best, out=larger[place, images])
            np.maximum(best, element, out=best)
        if not math.isfinite(best.sum()):
            return None
    return pooled, larger


def wide_pooled_gradients(
    x: Array,
    weights: tuple[int, ...] | Array,
    larger: Array,
    pooled: Array,
    slopes: Array,
    spans: Sequence[Window],
    pools: Sequence[Window],
    by_images: Array | None,
    convolve_quickly: Convolve | None = None,
    by_filter: ByFilter = backprop_filter,
) -> tuple[Array, Array] | None:
    """The gradients by weights and bias.

    Args:
        x, spans, pools: as ``wide_pooled_convolution`` has them.
        weights: its weights, or where the gradient by the images is not wanted their shape.
        larger, pooled: what that gave.
        slopes: the gradient by ``pooled``.
        by_images: is filled with the gradient by ``x``, where that is wanted.
        convolve_quickly: computes the convolution that ``turned`` describes; by default NumPy does the like.
        by_filter: computes the gradient by the weights.

    Returns:
        (float32 of the shape of the weights, float32 [outputs]); None where a slope is not finite.
    """
    sizes = weights if isinstance(weights, tuple) else weights.shape
    shape = len(x), *(w.output for w in spans), sizes[-1]
    by_weights, by_bias = np.zeros(sizes, np.float32), np.zeros(sizes[-1], np.float64)
    room = aligned((together(shape), *shape[1:]), np.float32)
    room[...] = 0  # also where no pool has a window
    for images in _groups(shape):
        some = slopes[images]
        if not math.isfinite(some.sum()) and not np.isfinite(some).all():
            return None
        left = np.multiply(some, np.greater(pooled[images], 0))
        by_bias += bias_add_grad(left)
        passed = room[: len(left)]
        first, *others = elements_of(passed, pools)
        for place in range(len(others) - 1, -1, -1):  # of equals the first counts
            np.multiply(left, larger[place, images], out=others[place])
            left -= others[place]
        first[...] = left
        by_weights += by_filter(x[images], sizes, passed, spans)
        if by_images is not None and convolve_quickly is not None:
            convolve_quickly(passed, by_images[images])
        elif by_images is not None and not isinstance(weights, tuple):
            by_images[images] = backprop_input(by_images[images].shape, weights, passed, spans)
    return by_weights, by_bias.astype(np.float32)


def _groups(shape: Sequence[int]) -> Iterator[slice]:
    """The images that are taken together, of those that give results of this shape."""
    step = together(shape)
    return (slice(first, first + step) for first in range(0, shape[0], step))
