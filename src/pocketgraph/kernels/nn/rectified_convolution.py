"""A convolution with its bias and a rectifier, and all its gradients, a few images at a time.

What the rectifier lets through stays in the processor's cache until the gradients by bias, weights and images are
computed of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.nn.convolution import convolve, convolve_depthwise
from pocketgraph.kernels.nn.convolution_gradients import (
    ByFilter,
    ByInput,
    backprop_filter,
    backprop_input,
    depthwise_backprop_filter,
    depthwise_backprop_input,
    turned_windows,
)
from pocketgraph.kernels.nn.normalization import bias_add_grad
from pocketgraph.kernels.recycled_arrays import aligned
from pocketgraph.kernels.windows import Window, image_groups

TOGETHER = 1 << 18
"""Elements of the results that are taken together: 1 MB of float32, half of a processor's second-level cache."""

Convolve = Callable[[Array, Array], None]
"""Puts the convolution of some images into an array, with weights and windows that it knows."""

LIMITS: dict[str, float] = {"Relu": math.inf, "Relu6": 6.0}
"""By rectifier: above which results are cut off, and have no gradient."""

CONVOLUTIONS: dict[str, Callable[[Array, Array, Sequence[Window]], Array]] = {
    "Conv2D": convolve,
    "DepthwiseConv2dNative": convolve_depthwise,
}
"""By op: its results."""

GRADIENTS: dict[str, tuple[ByFilter, ByInput]] = {
    "Conv2D": (backprop_filter, backprop_input),
    "DepthwiseConv2dNative": (depthwise_backprop_filter, depthwise_backprop_input),
}
"""By op: the gradients by weights and by images."""


def are_plain(*arrays: Array) -> bool:
    """Whether all are float32, and images or weights that are not empty."""
    return all(array.dtype == np.float32 and array.ndim == 4 and array.size for array in arrays)


def together(shape: Sequence[int]) -> int:
    """How many images are taken together, of those that give results of this shape."""
    return min(shape[0], max(1, TOGETHER // max(1, math.prod(shape[1:]))))


def turned(
    op: str, weights: Array, spans: Sequence[Window], sizes: Sequence[int]
) -> tuple[Array, Sequence[Window]] | None:
    """The weights and windows of the convolution of the gradient by the result that is the one by the images.

    Args:
        op, weights, spans: as ``rectified_convolution`` has them.
        sizes: rows and columns of the images.

    Returns:
        None where no convolution is, or not of the same op.
    """
    back = turned_windows(sizes, spans)
    is_depthwise = op == "DepthwiseConv2dNative"
    if back is None or (is_depthwise and weights.shape[3] != 1):
        return None
    turned = weights[::-1, ::-1]
    return turned if is_depthwise else turned.transpose(0, 1, 3, 2), back


def rectified_convolution(
    op: str,
    x: Array,
    weights: Array,
    bias: Array,
    spans: Sequence[Window],
    result: Array,
    rectifier: str = "Relu",
    convolve_quickly: Convolve | None = None,
) -> None:
    """Puts the rectified convolution with bias into ``result``.

    Args:
        op: the convolution's op, Conv2D or DepthwiseConv2dNative.
        x: the images, float32 [batch, rows, columns, channels].
        weights: float32 [rows, columns, channels, outputs or multiplier].
        bias: float32, one for each channel of the result.
        spans: the windows along rows and columns.
        result: float32 [batch, places…, channels].
        rectifier: Relu or Relu6.
        convolve_quickly: computes the rectified convolution with bias; by default NumPy does.
    """
    function = CONVOLUTIONS[op]
    for images in image_groups(len(x), math.prod(result.shape[1:]), TOGETHER):
        if convolve_quickly is not None:
            convolve_quickly(x[images], result[images])
            continue
        made = function(x[images], weights, spans)
        made += bias
        rectify(made, rectifier, result[images])


def rectify(made: Array, rectifier: str, result: Array, zeros: Array | int = 0) -> None:
    """Puts what a rectifier makes of float32 numbers into ``result``; a NaN stays one. NumPy takes half the time where
    ``zeros`` are as many."""
    np.maximum(made, zeros, out=result)
    if math.isfinite(LIMITS[rectifier]):
        np.minimum(result, np.float32(LIMITS[rectifier]), out=result)


def rectified_gradients(
    op: str,
    x: Array,
    weights: Array,
    rectified: Array,
    slopes: Array,
    spans: Sequence[Window],
    by_images: Array | None,
    rectifier: str = "Relu",
    convolve_quickly: Convolve | None = None,
    by_filter: ByFilter | None = None,
) -> tuple[Array, Array]:
    """The gradients of ``rectified_convolution``.

    Args:
        op, x, weights, spans: as it has them.
        rectified: its result.
        slopes: the gradient by that, of the same shape.
        by_images: is filled with the gradient by ``x``, where that is wanted.
        rectifier: Relu or Relu6.
        convolve_quickly: computes the convolution that ``turned`` describes; by default NumPy does the like.
        by_filter: computes the gradient by the weights in place of the op's own.

    Returns:
        The gradients (by the weights, by the bias).
    """
    (of_op, by_input), limit = GRADIENTS[op], np.float32(LIMITS[rectifier])
    by_filter = by_filter or of_op
    by_weights = np.zeros(weights.shape, np.float32)
    by_bias = np.zeros(rectified.shape[-1:], np.float64)
    room = aligned((together(rectified.shape), *rectified.shape[1:]), np.float32)
    for images in image_groups(len(x), math.prod(rectified.shape[1:]), TOGETHER):
        passed = room[: len(rectified[images])]
        mask = np.greater(rectified[images], 0)
        if math.isfinite(limit):
            mask &= np.less(rectified[images], limit)
        passed[...] = mask
        passed *= slopes[images]
        by_bias += bias_add_grad(passed)
        by_weights += by_filter(x[images], weights.shape, passed, spans)
        if by_images is not None and convolve_quickly is not None:
            convolve_quickly(passed, by_images[images])
        elif by_images is not None:
            some = by_images[images]
            some[...] = by_input(some.shape, weights, passed, spans)
    return by_weights, by_bias.astype(np.float32)
