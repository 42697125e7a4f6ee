"""What convolutions give back: transposed convolutions (the gradient by the input) and the gradient by the filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import (
    Window,
    channels_axis,
    from_channels_last,
    inside,
    outer_zeros,
    padded,
    taps,
    to_channels_last,
    windows_of_op,
)

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


def backprop_filter(x: Array, shape: tuple[int, ...], dy: Array, spans: Sequence[Window]) -> Array:
    """The gradient of ``convolve`` by its filter, of ``shape`` (spatial…, channels, outputs)."""
    _fits(dy.shape[1:-1], spans, dy.shape[-1], shape[-1])
    reserve(shape, np.float32)
    wide, flat = padded(widened(x), spans), widened(dy).reshape(-1, shape[-1])
    result = np.zeros(shape, dtype=wide.dtype)
    for index, where in taps(spans):
        result[index] = wide[where].reshape(-1, shape[-2]).T @ flat
    return result.astype(x.dtype, copy=False)


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
    wide, kernels = widened(dy).reshape(*dy.shape[:-1], channels, multiplier), widened(weights)
    total = outer_zeros(shape, spans, wide.dtype)
    for index, where in taps(spans):
        total[where] += (wide * kernels[index]).sum(axis=-1)
    return np.ascontiguousarray(_inner(total, shape, spans)).astype(dy.dtype, copy=False)


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
    wide = padded(widened(x), spans)
    spread = widened(dy).reshape(*dy.shape[:-1], channels, multiplier)
    result = np.zeros(reserve(shape, wide.dtype), dtype=wide.dtype)
    outer = tuple(range(x.ndim - 1))
    for index, where in taps(spans):
        result[index] = (wide[where][..., None] * spread).sum(axis=outer)
    return result.astype(x.dtype, copy=False)


def _full_shape(input_sizes: Array, dy: Array, weights: Array, data_format: str) -> tuple[int, ...]:
    """The input's shape, channels last; the op also takes the spatial sizes alone."""
    sizes = ints(input_sizes)
    if len(sizes) == len(data_format) - 2:
        return (dy.shape[0], *sizes, weights.shape[-2])
    if len(sizes) != len(data_format):
        raise RunError(f"input_sizes {list(sizes)} has not one entry for each of {data_format}")
    return sizes if channels_axis(data_format) == -1 else (sizes[0], *sizes[2:], sizes[1])


def _by_input(
    function: ByInput,
    input_sizes: Array,
    weights: Array,
    dy: Array,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> Array:
    """The gradient by the input in the op's data format: ``function`` of shape, weights, dy and windows."""
    dy = to_channels_last(dy, data_format)
    shape = _full_shape(input_sizes, dy, weights, data_format)
    if shape[0] != dy.shape[0]:
        raise RunError(f"input_sizes has a batch of {shape[0]}, out_backprop {list(dy.shape)} one of {dy.shape[0]}")
    taken = weights.shape[:-2]
    spans = windows_of_op(shape[1:-1], taken, strides, padding, data_format, dilations, explicit_paddings)
    return from_channels_last(function(shape, weights, dy, spans), data_format)


def _by_filter(
    function: ByFilter,
    x: Array,
    filter_sizes: Array,
    dy: Array,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> Array:
    """The gradient by the filter: ``function`` of the images, the filter's shape, dy and windows."""
    x, dy = to_channels_last(x, data_format), to_channels_last(dy, data_format)
    shape = ints(filter_sizes)
    spans = windows_of_op(x.shape[1:-1], shape[:-2], strides, padding, data_format, dilations, explicit_paddings)
    return function(x, shape, dy, spans)


def _register(op: str, by_input: ByInput, by_filter: ByFilter) -> None:
    """The two gradients of a convolution of pictures."""

    @kernel(f"{op}BackpropInput")
    def backprop_input(
        input_sizes: Array,
        filter: Array,
        out_backprop: Array,
        *,
        strides: Sequence[int],
        padding: str,
        explicit_paddings: Sequence[int] = (),
        data_format: str = "NHWC",
        dilations: Sequence[int] = (1, 1, 1, 1),
    ) -> Array:
        window = strides, padding, explicit_paddings, data_format, dilations
        return _by_input(by_input, input_sizes, filter, out_backprop, *window)

    @kernel(f"{op}BackpropFilter")
    def backprop_filter(
        input: Array,
        filter_sizes: Array,
        out_backprop: Array,
        *,
        strides: Sequence[int],
        padding: str,
        explicit_paddings: Sequence[int] = (),
        data_format: str = "NHWC",
        dilations: Sequence[int] = (1, 1, 1, 1),
    ) -> Array:
        window = strides, padding, explicit_paddings, data_format, dilations
        return _by_filter(by_filter, input, filter_sizes, out_backprop, *window)


_register("Conv2D", backprop_input, backprop_filter)
_register("DepthwiseConv2dNative", depthwise_backprop_input, depthwise_backprop_filter)


@kernel("Conv3DBackpropInputV2")
def conv3d_backprop_input(
    input_sizes: Array,
    filter: Array,
    out_backprop: Array,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
) -> Array:
    window = strides, padding, (), data_format, dilations
    return _by_input(backprop_input, input_sizes, filter, out_backprop, *window)


@kernel("Conv3DBackpropFilterV2")
def conv3d_backprop_filter(
    input: Array,
    filter_sizes: Array,
    out_backprop: Array,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
) -> Array:
    window = strides, padding, (), data_format, dilations
    return _by_filter(backprop_filter, input, filter_sizes, out_backprop, *window)


@kernel("Conv3DBackpropInput")
def conv3d_backprop_input_v1(
    input: Array,
    filter: Array,
    out_backprop: Array,
    *,
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
) -> Array:
    """The first form, which takes the sizes from the input itself."""
    sizes = np.array(input.shape)
    return conv3d_backprop_input(sizes, filter, out_backprop, strides=strides, padding=padding, dilations=dilations)


@kernel("Conv3DBackpropFilter")
def conv3d_backprop_filter_v1(
    input: Array,
    filter: Array,
    out_backprop: Array,
    *,
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
) -> Array:
    sizes = np.array(filter.shape)
    return conv3d_backprop_filter(input, sizes, out_backprop, strides=strides, padding=padding, dilations=dilations)
