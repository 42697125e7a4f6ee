"""Gradients of pooling beyond the plain ones: of three axes, by given places, of the gradient, of dilations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, lowest, widened
from pocketgraph.kernels.nn.pooling import max_pool_grad, prepared
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import (
    Window,
    from_channels_last,
    inside,
    outer_zeros,
    padded,
    taps,
    to_channels_last,
    windows_of_op,
)


def _same_shape(grad: Array, pooled: tuple[int, ...]) -> None:
    if grad.shape != pooled:
        raise RunError(f"the gradient is {list(grad.shape)} where pooling gives {list(pooled)}")


def _pooled_shape(x: Array, spans: Sequence[Window]) -> tuple[int, ...]:
    return (x.shape[0], *(w.output for w in spans), x.shape[-1])


@kernel("MaxPool3DGrad")
def max_pool3d_grad(
    orig_input: Array,
    orig_output: Array,
    grad: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str = "NDHWC",
) -> Array:
    """The gradient of each window goes to every element that equals the window's largest."""
    x, spans = prepared(orig_input, ksize, strides, padding, data_format)
    y, dy = to_channels_last(orig_output, data_format), to_channels_last(grad, data_format)
    for given in (y, dy):
        _same_shape(given, _pooled_shape(x, spans))
    wide = widened(dy)
    total = outer_zeros(x.shape, spans, wide.dtype)
    values = padded(x, spans, lowest(x.dtype))
    for _, where in taps(spans):
        total[where] += np.where(values[where] == y, wide, 0)
    return from_channels_last(total[inside(x.shape[1:-1], spans)].astype(grad.dtype), data_format)


def _picked(x: Array, y: Array, grad: Array, spans: Sequence[Window]) -> Array:
    """Of ``grad``, of the shape of ``x``, what lies where each window first has ``y``; 0 where it has not."""
    _same_shape(grad, x.shape)
    _same_shape(y, _pooled_shape(x, spans))
    values, grads = padded(x, spans, 0), padded(grad, spans, 0)
    real = padded(np.ones(x.shape, bool), spans, False)
    result, is_open = np.zeros(y.shape, grad.dtype), np.ones(y.shape, bool)
    for _, where in taps(spans):
        is_first = is_open & real[where] & (values[where] == y)
        result[is_first] = grads[where][is_first]
        is_open &= ~is_first
    return result


def _register_second(op: str, layout: str) -> Callable[..., Array]:
    @kernel(op)
    def max_pool_grad_grad(
        orig_input: Array,
        orig_output: Array,
        grad: Array,
        *,
        ksize: Sequence[int],
        strides: Sequence[int],
        padding: str,
        data_format: str = layout,
    ) -> Array:
        """The gradient of a pool's gradient by that: ``grad`` where each window first has what pooling gave."""
        x, spans = prepared(orig_input, ksize, strides, padding, data_format)
        y, dy = (to_channels_last(given, data_format) for given in (orig_output, grad))
        return from_channels_last(_picked(x, y, dy, spans), data_format)

    return max_pool_grad_grad


def _register_with_tensors(op: str, gradient: Callable[..., Array]) -> None:
    @kernel(op)
    def by_tensors(
        orig_input: Array,
        orig_output: Array,
        grad: Array,
        ksize: Array,
        strides: Array,
        *,
        padding: str,
        data_format: str = "NHWC",
    ) -> Array:
        """The gradient with its window as tensors."""
        window = {"ksize": ints(ksize), "strides": ints(strides), "padding": padding, "data_format": data_format}
        return gradient(orig_input, orig_output, grad, **window)


_register_second("MaxPool3DGradGrad", "NDHWC")
_register_with_tensors("MaxPoolGradGradV2", _register_second("MaxPoolGradGrad", "NHWC"))
_register_with_tensors("MaxPoolGradV2", max_pool_grad)


@kernel("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(
    input: Array,
    grad: Array,
    argmax: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    include_batch_in_index: bool = False,
) -> Array:
    """The gradient of each window goes to the element that ``argmax`` numbers."""
    x, spans = prepared(input, ksize, strides, padding, "NHWC")
    for given in (grad, argmax):
        _same_shape(given, _pooled_shape(x, spans))
    image = int(np.prod(x.shape[1:], dtype=np.int64))
    places = argmax.astype(np.int64)
    if not include_batch_in_index:
        places = places + (np.arange(x.shape[0]) * image).reshape(-1, 1, 1, 1)
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < x.size:
        raise RunError(f"argmax points outside the {x.size} elements of {list(x.shape)}")
    total = np.zeros(x.size, dtype=widened(grad).dtype)
    np.add.at(total, places.ravel(), widened(grad).ravel())
    return np.asarray(total.reshape(x.shape).astype(grad.dtype))


def _dilation(
    input: Array, filter: Array, dy: Array, strides: Sequence[int], rates: Sequence[int], padding: str
) -> tuple[tuple[Window, ...], Array]:
    """(windows, for each output the number of the filter's row-major element that gave the first largest sum; -1 where
    every sum is the type's lowest)."""
    if input.ndim != 4 or filter.ndim != 3 or input.shape[-1] != filter.shape[-1]:
        raise RunError(f"shapes that do not fit: input {list(input.shape)} and filter {list(filter.shape)}")
    taken = filter.shape[:-1]
    spans = windows_of_op(input.shape[1:-1], taken, strides, padding, "NHWC", rates, dilations_are="rates")
    shape = _pooled_shape(input, spans)
    _same_shape(dy, shape)
    wide = padded(widened(input), spans, 0)
    real = padded(np.ones((1, *input.shape[1:-1], 1), bool), spans, False)
    best = np.full(shape, lowest(wide.dtype), dtype=wide.dtype)
    chosen = np.full(shape, -1, dtype=np.int64)
    for number, (index, where) in enumerate(taps(spans)):
        sums = (wide[where] + widened(filter)[index]).astype(input.dtype).astype(wide.dtype)
        better = real[where] & (sums > best)
        best = np.where(better, sums, best)
        chosen = np.where(better, number, chosen)
    return spans, chosen


@kernel("Dilation2DBackpropInput")
def dilation2d_backprop_input(
    input: Array, filter: Array, out_backprop: Array, *, strides: Sequence[int], rates: Sequence[int], padding: str
) -> Array:
    """The gradient of Dilation2D by its input: each output's goes to the element that won, that of none to the first
    of the window that is a pixel."""
    spans, chosen = _dilation(input, filter, out_backprop, strides, rates, padding)
    wide = widened(out_backprop)
    total = outer_zeros(input.shape, spans, wide.dtype)
    for number, (_, where) in enumerate(taps(spans)):
        total[where] += np.where(chosen == number, wide, 0)
    places = np.nonzero(chosen < 0)
    if places[0].size:
        begins = [np.maximum(at * w.stride, w.before) for at, w in zip(places[1:3], spans, strict=True)]
        np.add.at(total, (places[0], *begins, places[3]), wide[places])
    return np.ascontiguousarray(total[inside(input.shape[1:-1], spans)]).astype(input.dtype)


@kernel("Dilation2DBackpropFilter")
def dilation2d_backprop_filter(
    input: Array, filter: Array, out_backprop: Array, *, strides: Sequence[int], rates: Sequence[int], padding: str
) -> Array:
    """The gradient of Dilation2D by its filter."""
    spans, chosen = _dilation(input, filter, out_backprop, strides, rates, padding)
    wide = widened(out_backprop)
    total = np.zeros(filter.shape, dtype=wide.dtype)
    for number, (index, _) in enumerate(taps(spans)):
        total[index] = np.where(np.maximum(chosen, 0) == number, wide, 0).sum(axis=(0, 1, 2))
    return total.astype(input.dtype)
