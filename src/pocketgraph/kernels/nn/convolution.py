"""Convolutions in one, two and three dimensions, plain, grouped and depthwise; dilation by a filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels import blas_threads
from pocketgraph.kernels.arrays import Array, lowest, reserve, widened
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import (
    Window,
    blocks,
    from_channels_last,
    image_groups,
    padded,
    spatial,
    taps,
    to_channels_last,
    window_view,
    windows,
    windows_of_op,
)

MOST_TOGETHER = 1 << 18
"""Elements of a result that are computed together: 1 MB of float32, half of a processor's second-level cache."""
LEAST_PATCHES = 1 << 16  # elements of windows that are laid out and multiplied at once: what the caches hold throughout
LEAST_ROWS = 256  # windows that are multiplied at once, however large they are: fewer make products slow
MOST_OF_THREADS = 1 << 22  # elements: likewise, of patches that several threads multiply
ADDED = 2  # times as long as laying an element of a window out: adding one to a sum


def convolve(x: Array, weights: Array, spans: Sequence[Window]) -> Array:
    """The correlation of ``x`` (batch, spatial…, channels) with ``weights`` (spatial…, channels, outputs).

    When the weights have fewer channels than ``x``, these are groups: each part of the outputs sees its own part of the
    channels. Sums are float32 for 16-bit floats, the input's type otherwise.

    Raises:
        RunError: the channels do not fit.
    """
    depth, filters = weights.shape[-2:]
    channels = x.shape[-1]
    if depth == 0 or channels % depth:
        raise RunError(f"shapes that do not fit: input {list(x.shape)} and filter {list(weights.shape)}")
    groups = channels // depth
    if groups == 0 or filters % groups:
        raise RunError(f"{filters} outputs do not divide into {groups} groups")
    places = tuple(w.output for w in spans)
    reserve((x.shape[0], *places, filters), x.dtype)
    wide = padded(widened(x), spans)
    kernels = widened(weights).reshape(-1, depth, filters)
    share = filters // groups
    parts = [
        _patches_product(
            wide if groups == 1 else wide[..., g * depth : (g + 1) * depth],
            np.ascontiguousarray(kernels[..., g * share : (g + 1) * share]).reshape(-1, share),
            spans,
        )
        for g in range(groups)
    ]
    result = parts[0] if groups == 1 else np.concatenate(parts, axis=-1)
    return result.astype(x.dtype, copy=False)


def _patches_product(x: Array, matrix: Array, spans: Sequence[Window]) -> Array:
    """Every window of the padded ``x`` as a row, times ``matrix``: some images, or rows of one, at once."""
    batch, channels, outputs = x.shape[0], x.shape[-1], matrix.shape[1]
    places = tuple(w.output for w in spans)
    if 0 in (batch, *places, outputs):
        return np.empty((batch, *places, outputs), dtype=x.dtype)
    if all(w.taps == 1 for w in spans):
        _, where = next(taps(spans))
        picked = x[where]
        return np.asarray((picked.reshape(-1, channels) @ matrix).reshape(batch, *places, outputs))
    if places[0] == spans[0].taps == 1 < len(spans):  # images of one row, as recordings are: in pieces of that
        return _patches_product(x[:, 0], matrix, spans[1:]).reshape(batch, *places, outputs)
    view, together = window_view(x, spans), max(LEAST_PATCHES, LEAST_ROWS * len(matrix))
    if view.size <= together:
        return np.asarray((view.reshape(-1, len(matrix)) @ matrix).reshape(batch, *places, outputs))
    result = np.empty((batch, *places, outputs), dtype=x.dtype)
    is_alone = blas_threads.used() == 1  # several wait for each other at the end of each product
    if is_alone and _shares_rows(spans[0], math.prod(places[1:]), matrix, together):
        _products_by_rows(x, matrix, spans, result, together)
        return result
    row = view.size // (batch * places[0])
    most = together if is_alone or row * places[0] <= together else MOST_OF_THREADS
    room = np.empty(0, x.dtype)
    for images, rows in blocks(batch, places[0], row, most):
        some, made = view[images, rows], result[images, rows]
        if not room.size:
            room = np.empty(some.size, x.dtype)
        laid_out = room[: some.size].reshape(some.shape)
        laid_out[...] = some
        np.matmul(laid_out.reshape(-1, len(matrix)), matrix, out=made.reshape(-1, outputs))
    return result


def _shares_rows(first: Window, line: int, matrix: Array, most: int) -> bool:
    """Whether fewer numbers are moved where windows of one column share the parts that they have within a row.

    Args:
        first: the windows along the rows.
        line: how many windows lie side by side.
        matrix: the weights, (elements of a window, outputs).
        most: elements that are laid out together.
    """
    elements, outputs = matrix.shape
    within, beyond = elements // first.taps, (first.taps - 1) * first.dilation
    together = min(first.output, most // (line * within) - beyond)  # rows
    if first.stride != 1 or together < 1:
        return False
    moved = within * (1 + beyond / together) + ADDED * (first.taps - 1) * outputs
    return bool(moved < elements)


def _products_by_rows(x: Array, matrix: Array, spans: Sequence[Window], result: Array, most: int) -> None:
    """Puts the convolution of the padded ``x`` into ``result``: a product for each row of the windows, added up.

    Windows move by one row, and the parts of them that lie within a row are laid out once for all.
    """
    first, outputs = spans[0], matrix.shape[1]
    view = window_view(x, (Window(1, 1, 1, 0, 0, x.shape[1]), *spans[1:]))
    row, beyond = math.prod(view.shape[2:]), (first.taps - 1) * first.dilation
    weights = matrix.reshape(first.taps, -1, outputs)
    room = added = np.empty(0, x.dtype)
    for images, rows in blocks(len(x), first.output, row, max(1, most - beyond * row)):
        made, top = result[images, rows], rows.start or 0
        count = made.shape[1]
        some = view[images, top : top + count + beyond]
        sums = made.reshape(len(made), -1, outputs)
        if not room.size:
            room, added = np.empty(some.size, x.dtype), np.empty(sums.shape, x.dtype)
        laid_out = room[: some.size].reshape(some.shape)
        laid_out[...] = some
        for part, of_row in enumerate(weights):
            start = part * first.dilation
            lines = laid_out[:, start : start + count].reshape(*sums.shape[:2], -1)
            if part == 0:
                np.matmul(lines, of_row, out=sums)
            else:
                more = added[: len(sums), : sums.shape[1]]
                np.matmul(lines, of_row, out=more)
                np.add(sums, more, out=sums)


def convolve_depthwise(x: Array, weights: Array, spans: Sequence[Window]) -> Array:
    """Each channel of ``x`` with its own filters: ``weights`` (rows, columns, channels, multiplier) gives output
    channels ordered by input channel, then multiplier."""
    channels, multiplier = weights.shape[-2:]
    if x.shape[-1] != channels:
        raise RunError(f"shapes that do not fit: input {list(x.shape)} and filter {list(weights.shape)}")
    places = tuple(w.output for w in spans)
    result_shape = reserve((x.shape[0], *places, channels * multiplier), x.dtype)
    wide, kernels = widened(x), widened(weights)
    result = np.zeros(result_shape, dtype=wide.dtype)
    if result.size:
        flat = kernels.reshape(*kernels.shape[:-2], channels * multiplier)
        for images in image_groups(len(wide), math.prod(result_shape[1:]), MOST_TOGETHER):
            some, made = padded(wide[images], spans), result[images]
            some = np.ascontiguousarray(some) if multiplier == 1 else np.repeat(some, multiplier, axis=-1)
            view = window_view(some, spans)
            for part, rows in blocks(len(some), places[0], math.prod(result_shape[2:]), MOST_TOGETHER):
                weighted(view[part, rows], flat, spans, made[part, rows])
    return result.astype(x.dtype, copy=False)


def weighted(view: Array, kernels: Array, spans: Sequence[Window], result: Array) -> None:
    """Puts into ``result`` the sums over each window, channel by channel, of what lies there times ``kernels``.

    Args:
        view: (images, rows, columns, rows and columns of a window, channels).
        kernels: (rows and columns of a window, channels).
        spans: the windows.
        result: (images, rows, columns, channels), in one piece.
    """
    if spans[1].stride != 1:
        np.einsum("nyxijc,ijc->nyxc", view, kernels, out=result)
        return
    beside, (images, rows, columns, channels) = columns_together(view), result.shape
    repeated = np.tile(kernels, columns)
    np.einsum("nyijc,ijc->nyc", beside, repeated, out=result.reshape(images, rows, columns * channels))


def columns_together(view: Array) -> Array:
    """A view of windows that move by one column, whose columns and channels are one axis, the last.

    Args:
        view: (images, rows, columns, rows and columns of a window, channels), of images in one piece.
    """
    images, rows, columns, height, width, channels = view.shape
    step = view.strides[-1 if channels > 1 else 2]  # what NumPy says of an axis of one element may be anything
    strides = (*view.strides[:2], *view.strides[3:5], step)
    return np.lib.stride_tricks.as_strided(
        view, (images, rows, height, width, columns * channels), strides, writeable=False
    )


def _checked(x: Array, weights: Array, rank: int) -> None:
    if x.ndim != rank or weights.ndim != rank:
        raise RunError(f"input and filter must have rank {rank}, they are {list(x.shape)} and {list(weights.shape)}")


def _convolution(
    x: Array,
    weights: Array,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
    function: Callable[[Array, Array, Sequence[Window]], Array],
) -> Array:
    _checked(x, weights, len(data_format))
    x = to_channels_last(x, data_format)
    taken = weights.shape[:-2]
    spans = windows_of_op(x.shape[1:-1], taken, strides, padding, data_format, dilations, explicit_paddings)
    return from_channels_last(function(x, weights, spans), data_format)


def _of_pictures(op: str, function: Callable[[Array, Array, Sequence[Window]], Array]) -> Callable[..., Array]:
    """The kernel of a convolution; the filter is (rows, columns, channels, outputs) in both data formats."""

    @kernel(op)
    def convolution(
        input: Array,
        filter: Array,
        *,
        strides: Sequence[int],
        padding: str,
        explicit_paddings: Sequence[int] = (),
        data_format: str = "NHWC",
        dilations: Sequence[int] = (1, 1, 1, 1),
    ) -> Array:
        return _convolution(input, filter, strides, padding, explicit_paddings, data_format, dilations, function)

    return convolution


conv2d = _of_pictures("Conv2D", convolve)
depthwise_conv2d_native = _of_pictures("DepthwiseConv2dNative", convolve_depthwise)


@kernel("Conv3D")
def conv3d(
    input: Array,
    filter: Array,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
) -> Array:
    return _convolution(input, filter, strides, padding, (), data_format, dilations, convolve)


@kernel("FusedPadConv2D")
def fused_pad_conv2d(
    input: Array, paddings: Array, filter: Array, *, mode: str, strides: Sequence[int], padding: str
) -> Array:
    """MirrorPad (REFLECT or SYMMETRIC), then Conv2D."""
    from pocketgraph.kernels.array.padding import mirror_pad

    return conv2d(mirror_pad(input, paddings, mode=mode), filter, strides=strides, padding=padding)


@kernel("FusedResizeAndPadConv2D")
def fused_resize_and_pad_conv2d(
    input: Array,
    size: Array,
    paddings: Array,
    filter: Array,
    *,
    mode: str,
    strides: Sequence[int],
    padding: str,
    resize_align_corners: bool = False,
) -> Array:
    """ResizeBilinear, then MirrorPad, then Conv2D."""
    from pocketgraph.kernels.image.resizing import resize_bilinear

    resized = resize_bilinear(input, size, align_corners=resize_align_corners).astype(input.dtype, copy=False)
    return fused_pad_conv2d(resized, paddings, filter, mode=mode, strides=strides, padding=padding)


@kernel("Dilation2D")
def dilation2d(input: Array, filter: Array, *, strides: Sequence[int], rates: Sequence[int], padding: str) -> Array:
    """The largest of input + filter in each window, channel by channel; ``filter`` is (rows, columns, channels)."""
    taken = filter.shape[:-1]
    spans = windows_of_op(input.shape[1:-1], taken, strides, padding, "NHWC", rates, dilations_are="rates")
    wide = padded(widened(input), spans, 0)
    inside = padded(np.ones((1, *input.shape[1:-1], 1), bool), spans, False)
    least = wide.dtype.type(lowest(input.dtype))
    best = np.full((input.shape[0], *(w.output for w in spans), input.shape[-1]), least, dtype=wide.dtype)
    for index, where in taps(spans):
        np.fmax(best, np.where(inside[where], wide[where] + widened(filter)[index], least), out=best)
    return best.astype(input.dtype, copy=False)


FORMATS = {("CHANNELS_LAST", 4): "NHWC", ("CHANNELS_LAST", 5): "NDHWC", ("CHANNELS_FIRST", 4): "NCHW",
           ("CHANNELS_FIRST", 5): "NCDHW"}  # fmt: skip


@kernel("Conv")
def conv(
    input: Array, filter: Array, *, strides: Sequence[int], padding: str, explicit_paddings: Sequence[int] = (),
    data_format: str = "CHANNELS_LAST", dilations: Sequence[int] = (), batch_dims: int = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """``filter`` is (spatial…, channels, outputs); ``strides`` and ``dilations`` have one batch dimension.

    Raises:
        RunError: other than two or three spatial dimensions, or channels that are not in ``groups`` groups.
    """
    layout = FORMATS.get((data_format, filter.ndim))
    if layout is None or batch_dims < 0 or input.ndim - batch_dims != filter.ndim - 1:
        raise RunError(
            f"The input must have 2 or 3 spatial dimensions behind {batch_dims} of the batch: {list(input.shape)} with "
            f"a filter of {list(filter.shape)}"
        )
    batch = input.shape[:batch_dims]
    count = 1
    for size in batch:
        count *= size
    x = to_channels_last(input.reshape(count, *input.shape[batch_dims:]), layout)
    if x.shape[-1] != filter.shape[-2] * groups:
        raise RunError(f"{x.shape[-1]} channels do not fit {groups} groups of {filter.shape[-2]}")
    spans = windows(
        x.shape[1:-1], filter.shape[:-2], spatial(strides, layout), padding,
        spatial(dilations, layout, "dilations") if dilations else (), explicit_paddings, layout,
    )  # fmt: skip
    found = from_channels_last(convolve(x, filter, spans), layout)
    return np.asarray(found.reshape(*batch, *found.shape[1:]))
