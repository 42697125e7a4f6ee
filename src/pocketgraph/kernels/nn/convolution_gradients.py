"""What convolutions give back: transposed convolutions (the gradient by the input) and the gradient by the filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels import blas_threads
from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.nn.convolution import columns_together, convolve_depthwise
from pocketgraph.kernels.nn.tiled_gradients import PASS, backprop_filter_in_tiles, best_tile
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import (
    Window,
    blocks,
    channels_axis,
    from_channels_last,
    image_groups,
    inside,
    outer_zeros,
    padded,
    taps,
    to_channels_last,
    window_view,
    windows_of_op,
)

PATCH_ELEMENTS = 1 << 18
"""What is laid out at once for a matrix product: 1 MB of float32, half of a processor's second-level cache."""

ROW_ELEMENTS = 1 << 16
"""The same where it is laid out by rows: 256 kB of float32."""

SMALL_PRODUCT = 10**6
"""Multiplications up to which OpenBLAS reads matrices where they lie; for larger products it first copies both."""

LEAST_SUMMED = 64
"""Windows of a small product from which its sums are worth adding to those before."""

LEAST_PLACES = 128
"""Windows of an image from which laying out by rows takes less than by windows."""

FEW_CHANNELS = 4
"""Up to here planes are laid out where a row of the result has more places than that of a window has elements."""

SHORT_ROW = 9
"""Elements of a window's row up to which, of few channels, planes take less than rows, whose copies are short."""

MANY_CHANNELS = 32
"""Channels from which summing up pixel by pixel takes less than joining the columns of a row."""

ByInput = Callable[[tuple[int, ...], Array, Array, Sequence[Window]], Array]
ByFilter = Callable[[Array, tuple[int, ...], Array, Sequence[Window]], Array]


def _inner(x: Array, shape: tuple[int, ...], spans: Sequence[Window]) -> Array:
    return x[inside(shape[1:-1], spans)]


def _fits(places: tuple[int, ...], spans: Sequence[Window], channels: int, wanted: int) -> None:
    expected = tuple(w.output for w in spans)
    if places != expected or channels != wanted:
        raise RunError(f"out_backprop is {[*places, channels]} where the convolution gives {[*expected, wanted]}")


def backprop_input(shape: tuple[int, ...], weights: Array, dy: Array, spans: Sequence[Window]) -> Array:
    """The gradient of ``convolve`` by its input, of ``shape`` (batch, spatial…, channels): a transposed convolution."""
    _fits(dy.shape[1:-1], spans, dy.shape[-1], weights.shape[-1])
    depth, filters = weights.shape[-2:]
    groups = shape[-1] // max(depth, 1)
    if groups < 1 or groups * depth != shape[-1] or filters % groups:
        raise RunError(f"shapes that do not fit: input {list(shape)} and filter {list(weights.shape)}")
    wide, kernels = widened(dy), widened(weights)
    if groups == 1 and all(w.taps == w.stride == 1 and not w.before and not w.after for w in spans):
        product: Array = wide.reshape(-1, filters) @ kernels.reshape(depth, filters).T
        return product.reshape(shape).astype(dy.dtype, copy=False)
    total = outer_zeros(shape, spans, wide.dtype)
    share = filters // groups
    for group in range(groups):
        flat = wide[..., group * share : (group + 1) * share].reshape(-1, share)
        channels = slice(group * depth, (group + 1) * depth)
        for index, where in taps(spans):
            part = flat @ kernels[index][:, group * share : (group + 1) * share].T
            target = (*where, channels)
            total[target] += part.reshape(*dy.shape[:-1], depth)
    return np.ascontiguousarray(_inner(total, shape, spans)).astype(dy.dtype, copy=False)


def backprop_filter(
    x: Array, shape: tuple[int, ...], dy: Array, spans: Sequence[Window], *, in_tiles: bool = True
) -> Array:
    """The gradient of ``convolve`` by its filter, of ``shape`` (spatial…, channels, outputs).

    What lies under the windows of some images, or of some rows of a large one, is laid out as a matrix that fits the
    processor's cache, and multiplied. Where the filter has fewer channels than ``x``, these are groups, as in
    ``convolve``. Without ``in_tiles`` the sums are plain ones, also of wide convolutions (tiled_gradients.py).
    """
    _fits(dy.shape[1:-1], spans, dy.shape[-1], shape[-1])
    depth, filters = shape[-2:]
    reserve(shape, np.float32)
    if not x.size or not dy.size or not math.prod(shape):
        return np.zeros(shape, dtype=x.dtype)
    groups = x.shape[-1] // depth
    if groups * depth != x.shape[-1] or filters % groups:
        raise RunError(f"shapes that do not fit: input {list(x.shape)} and filter {list(shape)}")
    if groups > 1:
        share = filters // groups
        parts = [
            backprop_filter(
                x[..., group * depth : (group + 1) * depth],
                (*shape[:-1], share),
                dy[..., group * share : (group + 1) * share],
                spans,
                in_tiles=in_tiles,
            )
            for group in range(groups)
        ]
        return np.concatenate(parts, axis=-1)
    images, slopes = widened(x), widened(dy)
    tile = best_tile(len(x), shape, spans) if in_tiles and images.dtype == slopes.dtype == np.float32 else None
    with blas_threads.at_most(1):  # they would wait for each other in each of these products
        found = None if tile is None else backprop_filter_in_tiles(images, shape, slopes, spans, tile)
        if found is None or not np.isfinite(found).all():
            found = _layout(shape, spans)(padded(images, spans), shape, slopes, spans)
    return found.reshape(shape).astype(x.dtype, copy=False)


plain_backprop_filter = partial(backprop_filter, in_tiles=False)
"""``backprop_filter`` by plain sums."""


def _layout(shape: tuple[int, ...], spans: Sequence[Window]) -> ByFilter:
    """How the windows of such a filter are laid out."""
    if len(spans) != 2:
        return _by_windows
    down, along = spans
    row = along.taps * shape[-2]
    is_overlapping = down.stride == 1 < down.taps
    by_rows = is_overlapping and shape[-2] <= MANY_CHANNELS and down.output * along.output >= LEAST_PLACES
    if shape[-2] <= FEW_CHANNELS and row <= along.output:
        is_small = along.output * row * shape[-1] * down.reach <= SMALL_PRODUCT
        return _by_rows if by_rows and row > SHORT_ROW and is_small else _by_planes
    return _by_rows if by_rows else _by_windows


def _by_rows(wide: Array, shape: tuple[int, ...], slopes: Array, spans: Sequence[Window]) -> Array:
    """A row for each row of a window, laid out once: all windows' first rows lie in one piece, and so do their second
    ones, which begin some rows later."""
    down, along = spans
    height, width, channels, outputs = shape
    single = (Window(1, 1, 1, 0, 0, wide.shape[1]), along)
    view = window_view(wide, single)[:, :, :, 0]
    row = along.output * width * channels
    steps = (min(ROW_ELEMENTS, SMALL_PRODUCT // outputs) // row, ROW_ELEMENTS // row, down.reach)
    step = min(down.output, next(each for each in steps if each >= down.reach))  # fewer would be laid out twice or more
    rows = step + down.reach - 1
    room = np.empty((rows, *view.shape[2:]), dtype=wide.dtype)
    flat, places = room.reshape(-1, width * channels), step * along.output
    taps_of_rows = window_view(flat[np.newaxis], (Window(height, 1, down.dilation * along.output, 0, 0, places),))
    rows_of_taps = taps_of_rows[0].transpose(1, 2, 0)
    result = np.zeros((height, width * channels, outputs), dtype=wide.dtype)
    product = np.empty_like(result)
    of_places = slopes.reshape(len(wide), -1, outputs)
    for first in range(0, down.output, step):
        some = room[: min(rows, wide.shape[1] - first)]
        parts = of_places[:, first * along.output : (first + step) * along.output]
        under = rows_of_taps[:, :, : parts.shape[1]]
        for image, part in zip(view[:, first : first + rows], parts, strict=True):
            some[...] = image
            result += np.matmul(under, part, out=product)
    return result


def _by_windows(wide: Array, shape: tuple[int, ...], slopes: Array, spans: Sequence[Window]) -> Array:
    """A row for each window: of each of its rows all channels lie in one piece."""
    view, size = window_view(wide, spans), math.prod(shape[:-1])
    result = np.zeros((size, shape[-1]), dtype=wide.dtype)
    few = SMALL_PRODUCT // (size * shape[-1])
    together = min(PATCH_ELEMENTS, few * size) if few >= LEAST_SUMMED else PATCH_ELEMENTS
    for images, rows in blocks(view.shape[0], view.shape[1], math.prod(view.shape[2:]), together):
        patches = view[images, rows].reshape(-1, size)
        result += patches.T @ slopes[images, rows].reshape(-1, shape[-1])
    return result


def _by_planes(wide: Array, shape: tuple[int, ...], slopes: Array, spans: Sequence[Window]) -> Array:
    """A row for each element of a window: what all windows of a row have there lies in one piece."""
    planes, size = np.ascontiguousarray(np.moveaxis(wide, -1, 0)), math.prod(shape[:-1])
    view = window_view(planes.reshape(-1, *planes.shape[2:], 1), spans)[..., 0]
    view = view.reshape(shape[2], len(wide), *view.shape[1:]).transpose(4, 5, 0, 1, 2, 3)
    result = np.zeros((size, shape[-1]), dtype=wide.dtype)
    together = min(PATCH_ELEMENTS, SMALL_PRODUCT // shape[-1])
    for images, rows in blocks(len(wide), view.shape[4], view.shape[5] * size, together):
        patches = view[:, :, :, images, rows].reshape(size, -1)
        result += patches @ slopes[images, rows].reshape(-1, shape[-1])
    return result


def depthwise_backprop_input(shape: tuple[int, ...], weights: Array, dy: Array, spans: Sequence[Window]) -> Array:
    """The gradient by the images of a depthwise convolution.

    Args:
        shape: of the images, [batch, rows, columns, channels].
        weights: [rows, columns, channels, multiplier].
        dy: the gradient by the result, [batch, rows, columns, channels * multiplier].
        spans: the window along each axis.
    """
    channels, multiplier = weights.shape[-2:]
    _fits(dy.shape[1:-1], spans, dy.shape[-1], channels * multiplier)
    wide, kernels = widened(dy), widened(weights)
    back = turned_windows(shape[1:-1], spans)
    if back is not None:
        turned = kernels[::-1, ::-1].reshape(*kernels.shape[:2], channels * multiplier, 1)
        slopes = convolve_depthwise(wide, turned, back).reshape(*shape, multiplier)
        return (slopes[..., 0] if multiplier == 1 else slopes.sum(axis=-1)).astype(dy.dtype, copy=False)
    wide = wide.reshape(*dy.shape[:-1], channels, multiplier)
    total = outer_zeros(shape, spans, wide.dtype)
    for images, _ in blocks(shape[0], 1, math.prod(total.shape[1:]), PATCH_ELEMENTS):
        some, part = total[images], wide[images]
        product = np.empty_like(part)
        for index, where in taps(spans):
            np.multiply(part, kernels[index], out=product)
            some[where] += product[..., 0] if multiplier == 1 else product.sum(axis=-1)
    return np.ascontiguousarray(_inner(total, shape, spans)).astype(dy.dtype, copy=False)


def turned_windows(sizes: Sequence[int], spans: Sequence[Window]) -> list[Window] | None:
    """The windows over the gradient by a convolution's result whose sums are that by images of these sizes; None where
    strides leave gaps, or borders are wider than the windows."""
    if any(span.stride != 1 or max(span.before, span.after) >= span.reach for span in spans):
        return None
    return [
        Window(span.taps, 1, span.dilation, span.reach - 1 - span.before, span.reach - 1 - span.after, size)
        for span, size in zip(spans, sizes, strict=True)
    ]


def depthwise_backprop_filter(x: Array, shape: tuple[int, ...], dy: Array, spans: Sequence[Window]) -> Array:
    """The gradient by the weights of a depthwise convolution.

    Args:
        x: the images, [batch, rows, columns, channels].
        shape: of the weights, [rows, columns, channels, multiplier].
        dy: the gradient by the result, [batch, rows, columns, channels * multiplier].
        spans: the window along each axis.
    """
    channels, multiplier = shape[-2:]
    _fits(dy.shape[1:-1], spans, dy.shape[-1], channels * multiplier)
    wide, slopes = widened(x), widened(dy)
    total = np.zeros((*reserve(shape, wide.dtype)[:-2], channels * multiplier), dtype=wide.dtype)
    if slopes.size:
        for images in image_groups(len(wide), math.prod(slopes.shape[1:]), PATCH_ELEMENTS):
            some = padded(wide[images], spans)
            some = np.ascontiguousarray(some) if multiplier == 1 else np.repeat(some, multiplier, axis=-1)
            view = window_view(some, spans)
            for part, rows in blocks(len(some), slopes.shape[1], math.prod(slopes.shape[2:]), PATCH_ELEMENTS):
                total += correlated(view[part, rows], slopes[images][part, rows], spans)
    return total.reshape(shape).astype(x.dtype, copy=False)


def correlated(view: Array, slopes: Array, spans: Sequence[Window]) -> Array:
    """For each element of a window, channel by channel, the sum over all windows of what lies there times ``slopes``.

    Args:
        view: (images, rows, columns, rows and columns of a window, channels).
        slopes: (images, rows, columns, channels).
        spans: the windows.
    """
    if spans[1].stride != 1 or slopes.shape[-1] >= MANY_CHANNELS:
        return np.asarray(np.einsum("nyxijc,nyxc->ijc", view, slopes))
    # the columns of a row lie one after the other, and are summed up last
    images, rows, columns, channels = slopes.shape
    beside = columns_together(view)
    flat = np.einsum("nyijc,nyc->ijc", beside, slopes.reshape(images, rows, columns * channels))
    return np.asarray(flat.reshape(*view.shape[3:5], columns, channels).sum(axis=2))


def _sizes(given: Array) -> tuple[int, ...]:
    """Sizes that are given as a vector, or, as the first ops have it, as the tensor of this shape itself."""
    return ints(given) if given.ndim == 1 else given.shape


def _full_shape(input_sizes: Array, dy: Array, weights: Array, data_format: str) -> tuple[int, ...]:
    """The input's shape, channels last; the op also takes the spatial sizes alone."""
    sizes = _sizes(input_sizes)
    if len(sizes) == len(data_format) - 2:
        return (dy.shape[0], *sizes, weights.shape[-2])
    if len(sizes) != len(data_format):
        raise RunError(f"input_sizes {list(sizes)} has not one entry for each of {data_format}")
    return sizes if channels_axis(data_format) == -1 else (sizes[0], *sizes[2:], sizes[1])


Spans = Callable[[Sequence[int], Sequence[int]], tuple[Window, ...]]
"""The windows over axes of these sizes of a filter of so many taps along each."""


def _by_input(
    function: ByInput, input_sizes: Array, weights: Array, dy: Array, data_format: str, spans: Spans
) -> Array:
    """The gradient by the input in the op's data format: ``function`` of shape, weights, dy and windows."""
    dy = to_channels_last(dy, data_format)
    shape = _full_shape(input_sizes, dy, weights, data_format)
    if shape[0] != dy.shape[0]:
        raise RunError(f"input_sizes has a batch of {shape[0]}, out_backprop {list(dy.shape)} one of {dy.shape[0]}")
    return from_channels_last(function(shape, weights, dy, spans(shape[1:-1], weights.shape[:-2])), data_format)


def _by_filter(function: ByFilter, x: Array, filter_sizes: Array, dy: Array, data_format: str, spans: Spans) -> Array:
    """The gradient by the filter: ``function`` of the images, the filter's shape, dy and windows."""
    x, dy = to_channels_last(x, data_format), to_channels_last(dy, data_format)
    if len(x) != len(dy):
        raise RunError(f"input has a batch of {len(x)}, out_backprop {list(dy.shape)} one of {len(dy)}")
    shape = _sizes(filter_sizes)
    return function(x, shape, dy, spans(x.shape[1:-1], shape[:-2]))


def _spans(*how: Any) -> Spans:
    """The windows by an op's strides, padding, data format, dilations and explicit paddings."""
    return lambda sizes, taps: windows_of_op(sizes, taps, *how)


def _of_pictures(gradient: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel of a gradient of a convolution of pictures: by the input of its sizes and weights, by the filter of
    images and its sizes."""

    def backprop(
        first: Array,
        second: Array,
        out_backprop: Array,
        *,
        strides: Sequence[int],
        padding: str,
        explicit_paddings: Sequence[int] = (),
        data_format: str = "NHWC",
        dilations: Sequence[int] = (1, 1, 1, 1),
    ) -> Array:
        spans = _spans(strides, padding, data_format, dilations, explicit_paddings)
        return gradient(first, second, out_backprop, data_format, spans)

    return backprop


def _of_volumes(gradient: Callable[..., Array]) -> Callable[..., Array]:
    """The same of volumes; the first form of the op takes the tensors themselves where the second takes their sizes."""

    def backprop(
        first: Array,
        second: Array,
        out_backprop: Array,
        *,
        strides: Sequence[int],
        padding: str,
        data_format: str = "NDHWC",
        dilations: Sequence[int] = (1, 1, 1, 1, 1),
    ) -> Array:
        return gradient(first, second, out_backprop, data_format, _spans(strides, padding, data_format, dilations))

    return backprop


kernel("Conv2DBackpropInput")(_of_pictures(partial(_by_input, backprop_input)))
_by_filter_kernel = _of_pictures(partial(_by_filter, backprop_filter))
_by_filter_kernel.without = {PASS: _of_pictures(partial(_by_filter, plain_backprop_filter))}  # type: ignore[attr-defined]
kernel("Conv2DBackpropFilter")(_by_filter_kernel)
kernel("DepthwiseConv2dNativeBackpropInput")(_of_pictures(partial(_by_input, depthwise_backprop_input)))
kernel("DepthwiseConv2dNativeBackpropFilter")(_of_pictures(partial(_by_filter, depthwise_backprop_filter)))
kernel("Conv3DBackpropInput", "Conv3DBackpropInputV2")(_of_volumes(partial(_by_input, backprop_input)))
kernel("Conv3DBackpropFilter", "Conv3DBackpropFilterV2")(_of_volumes(partial(_by_filter, backprop_filter)))
