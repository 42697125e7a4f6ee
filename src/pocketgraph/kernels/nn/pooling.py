"""Pooling: the largest or the mean of each window, and the gradients of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.arrays import Array, ints, lowest, reserve, widened
from pocketgraph.kernels.nn.adjacent_windows import are_adjacent, spread_to_largest
from pocketgraph.kernels.nn.overlapping_windows import are_overlapping, spread_over_overlapping
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, kernel
from pocketgraph.kernels.windows import (
    Window,
    channels_axis,
    from_channels_last,
    inside,
    outer_zeros,
    padded,
    split_axes,
    taps,
    to_channels_last,
    windows,
)


def prepared(
    x: Array, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str, explicit: Sequence[int] = ()
) -> tuple[Array, tuple[Window, ...]]:
    """(``x`` with channels last, the windows of its spatial axes), checked."""
    if x.ndim != len(data_format):
        raise RunError(f"the input must have rank {len(data_format)}, its shape is {list(x.shape)}")
    batch, depth, sizes = split_axes(ksize, data_format)
    batch_stride, depth_stride, steps = split_axes(strides, data_format)
    if batch != 1 or batch_stride != 1:
        raise RunError("Pooling is not yet supported on the batch dimension.")
    if depth != 1 or depth_stride != 1:
        raise RunError("a window over channels goes alone: 1 in every spatial dimension")
    x = to_channels_last(x, data_format)
    spans = windows(x.shape[1:-1], sizes, steps, padding, (), explicit, data_format)
    reserve((x.shape[0], *(w.output for w in spans), x.shape[-1]), x.dtype)
    return x, spans


def largest_in_windows(x: Array, spans: Sequence[Window]) -> Array:
    """The largest of each window of ``x`` (batch, spatial…, channels); padding and NaN are never the largest."""
    floor: Any = lowest(x.dtype)
    wide = padded(x, spans, floor)
    best = np.full((x.shape[0], *(w.output for w in spans), x.shape[-1]), floor, dtype=x.dtype)
    larger = np.maximum if x.dtype.kind in "iu" else np.fmax
    for _, where in taps(spans):
        larger(best, wide[where], out=best)
    return best


def inside_counts(sizes: Sequence[int], spans: Sequence[Window]) -> Array:
    """How many elements of each window are not padding, with a last axis of 1."""
    result = np.ones((1,) * len(spans), dtype=np.int64)
    for axis, (size, w) in enumerate(zip(sizes, spans, strict=True)):
        first = np.arange(w.output) * w.stride - w.before
        count = np.minimum(first + w.taps, size) - np.maximum(first, 0)
        result = result * count.reshape([-1 if a == axis else 1 for a in range(len(spans))])
    return result[..., None]


def mean_of_windows(x: Array, spans: Sequence[Window]) -> Array:
    """The mean of each window; padding does not count."""
    wide = padded(widened(x), spans)
    total = np.zeros((x.shape[0], *(w.output for w in spans), x.shape[-1]), dtype=wide.dtype)
    for _, where in taps(spans):
        total += wide[where]
    counts = inside_counts(x.shape[1:-1], spans).astype(wide.dtype)
    return np.asarray(total / counts).astype(x.dtype, copy=False)


def _over_channels(x: Array, depth: int, stride: int, sizes: Sequence[int]) -> Array:
    if any(s != 1 for s in sizes):
        raise RunError("MaxPooling supports exactly one of pooling across depth or pooling across width/height.")
    if depth != stride or x.shape[-1] % depth:
        raise RunError(f"a window of {depth} channels with stride {stride} does not divide {x.shape[-1]} channels")
    return np.asarray(x.reshape(*x.shape[:-1], -1, depth).max(axis=-1))


@kernel("MaxPool")
def max_pool(
    input: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
) -> Array:
    _, depth, sizes = split_axes(ksize, data_format)
    if depth != 1:
        x = to_channels_last(input, data_format)
        pooled = _over_channels(x, depth, split_axes(strides, data_format)[1], sizes)
        return from_channels_last(pooled, data_format)
    x, spans = prepared(input, ksize, strides, padding, data_format, explicit_paddings)
    return from_channels_last(largest_in_windows(x, spans), data_format)


@kernel("MaxPoolV2")
def max_pool_v2(input: Array, ksize: Array, strides: Array, *, padding: str, data_format: str = "NHWC") -> Array:
    return max_pool(input, ksize=ints(ksize), strides=ints(strides), padding=padding, data_format=data_format)


def _register_pool(op: str, layout: str, pooled: Callable[[Array, Sequence[Window]], Array]) -> None:
    """The kernel of a pool whose data format is ``layout`` where none is given."""

    @kernel(op)
    def pool(
        input: Array, *, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str = layout
    ) -> Array:
        x, spans = prepared(input, ksize, strides, padding, data_format)
        return from_channels_last(pooled(x, spans), data_format)


_register_pool("MaxPool3D", "NDHWC", largest_in_windows)
_register_pool("AvgPool", "NHWC", mean_of_windows)
_register_pool("AvgPool3D", "NDHWC", mean_of_windows)


def largest_places(x: Array, spans: Sequence[Window]) -> tuple[Array, Array]:
    """(largest, its flat position in the image (rows, columns, channels)); of equals the first in row-major order."""
    if not any(w.before or w.after for w in spans):
        found = _places_inside(x, spans)
        if found is not None:
            return found
    floor = lowest(x.dtype)
    shape = (x.shape[0], *(w.output for w in spans), x.shape[-1])
    places = np.arange(int(np.prod(x.shape[1:], dtype=np.int64))).reshape(1, *x.shape[1:])
    numbers = padded(places, spans, -1)
    wide = padded(x, spans, floor)
    found = _places_inside(wide, spans)
    if found is not None and bool((found[0] > floor).all()):  # the border is nowhere the largest
        return found[0], numbers.ravel().take(found[1])
    best = np.full(shape, floor, dtype=x.dtype)
    where_found = np.full(shape, -1, dtype=np.int64)
    for _, where in taps(spans):
        seen = np.broadcast_to(numbers[where], shape)
        values = wide[where]
        better = (seen >= 0) & ((where_found < 0) | (values > best))
        best = np.where(better, values, best)
        where_found = np.where(better, seen, where_found)
    return best, where_found


MOST_TAPS = 255  # elements of a window whose numbers fit a byte


def _places_inside(x: Array, spans: Sequence[Window]) -> tuple[Array, Array] | None:
    """``largest_places`` of windows without padding: the largest first, then which element of its window it is.

    None where that takes more than a byte, or where a NaN makes the order of the elements count.
    """
    views = [x[where] for _, where in taps(spans)]
    if len(views) > MOST_TAPS or not views[0].size:
        return None
    best = views[0].copy()
    for view in views[1:]:
        np.maximum(best, view, out=best)
    if x.dtype.kind not in "iub" and bool(np.isnan(best).any()):
        return None
    which = np.zeros(best.shape, np.uint8)
    for tap in range(len(views) - 1, -1, -1):  # backwards, so that of equals the first counts
        others = views[tap] != best
        which *= others
        which += np.uint8(tap) * ~others
    numbers = np.arange(int(np.prod(x.shape[1:-1], dtype=np.int64))).reshape(1, *x.shape[1:-1], 1)
    seen = [numbers[where] for _, where in taps(spans)]
    depth = x.shape[-1]
    offsets = np.array([int(each.flat[0] - seen[0].flat[0]) * depth for each in seen], np.int64)
    places = offsets.take(which)
    places += seen[0] * depth + np.arange(depth)
    return best, places


@kernel("MaxPoolWithArgmax")
def max_pool_with_argmax(
    input: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    Targmax: DType = INT64,
    include_batch_in_index: bool = False,
) -> tuple[Array, Array]:
    x, spans = prepared(input, ksize, strides, padding, "NHWC")
    best, found = largest_places(x, spans)
    if include_batch_in_index:
        image = int(np.prod(x.shape[1:], dtype=np.int64))
        found = found + (np.arange(x.shape[0]) * image).reshape(-1, 1, 1, 1)
    return best, found.astype(Targmax.numpy)


def _max_gradient(x: Array, dy: Array, spans: Sequence[Window], context: Context | None) -> Array:
    for fits, spread in ((are_adjacent, spread_to_largest), (are_overlapping, spread_over_overlapping)):
        if fits(x, dy, spans):
            made = np.empty(x.shape, np.float32) if context is None else recycled(context, x.shape, np.float32)
            if spread(x, dy, spans, made):
                return made
    _, found = largest_places(x, spans)
    image = int(np.prod(x.shape[1:], dtype=np.int64))
    total = np.zeros((x.shape[0], image), dtype=widened(dy).dtype)
    for n in range(x.shape[0]):
        np.add.at(total[n], found[n].ravel(), widened(dy)[n].ravel())
    result: Array = total.reshape(x.shape).astype(dy.dtype)
    return result


@kernel("MaxPoolGrad")
def max_pool_grad(
    orig_input: Array,
    orig_output: Array,
    grad: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    context: Context | None = None,
) -> Array:
    x, spans = prepared(orig_input, ksize, strides, padding, data_format, explicit_paddings)
    pooled = (x.shape[0], *(w.output for w in spans), x.shape[-1])
    if orig_output.shape != grad.shape or to_channels_last(grad, data_format).shape != pooled:
        shapes = f"{list(orig_input.shape)} with orig_output {list(orig_output.shape)} and grad {list(grad.shape)}"
        raise RunError(f"shapes that do not fit: orig_input {shapes}")
    return from_channels_last(_max_gradient(x, to_channels_last(grad, data_format), spans, context), data_format)


def _register_mean_gradient(op: str, layout: str) -> None:
    @kernel(op)
    def mean_gradient(
        orig_input_shape: Array,
        grad: Array,
        *,
        ksize: Sequence[int],
        strides: Sequence[int],
        padding: str,
        data_format: str = layout,
    ) -> Array:
        """Each gradient spread evenly over its window; padding gets nothing and does not count."""
        sizes = ints(orig_input_shape)
        shape = sizes if channels_axis(data_format) == -1 else (sizes[0], *sizes[2:], sizes[1])
        dy = to_channels_last(grad, data_format)
        _, _, window = split_axes(ksize, data_format)
        spans = windows(shape[1:-1], window, split_axes(strides, data_format)[2], padding)
        reserve(shape, np.float64)
        wide = widened(dy) / inside_counts(shape[1:-1], spans).astype(widened(dy).dtype)
        total = outer_zeros(shape, spans, wide.dtype)
        for _, where in taps(spans):
            total[where] += wide
        return from_channels_last(total[inside(shape[1:-1], spans)].astype(grad.dtype), data_format)


_register_mean_gradient("AvgPoolGrad", "NHWC")
_register_mean_gradient("AvgPool3DGrad", "NDHWC")
