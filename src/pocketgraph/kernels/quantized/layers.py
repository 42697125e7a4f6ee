"""Layers computed on codes: convolutions, matrix products, sums, activations and pooling of quantized tensors.

Every op hands on (codes, lowest, highest): the floats that the extreme codes stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.array.concat_split import concatenated
from pocketgraph.kernels.array.reshaping import reshape
from pocketgraph.kernels.arrays import Array, ints, number, reserve
from pocketgraph.kernels.nn.pooling import inside_counts, largest_in_windows
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    F32,
    WIDE,
    Quantized,
    bias_range,
    codes_of,
    dequantized_first,
    joint_range,
    limited_code,
    moved,
    moved_on_line,
    product_range,
    quantized_first,
    sum_range,
    to_code,
)
from pocketgraph.kernels.quantized.range_checks import checked, ends, flushed
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import Window, padded, spatial, split_axes, taps, windows


def ranged(codes: Array, low: float, high: float) -> Quantized:
    """Codes with the ends of their range."""
    return codes, np.array(low, dtype=F32), np.array(high, dtype=F32)


def centered(codes: Array, low: Array, high: Array) -> Array:
    """The codes less the code of zero, as float64, in which sums of their products are exact."""
    zero = to_code(0.0, *ends(low, high), codes_of(codes.dtype))
    return codes.astype(np.float64) - zero


def _product_range(a: Array, low_a: Array, high_a: Array, b: Array, low_b: Array, high_b: Array) -> tuple[float, float]:
    """The range of sums of products of the codes of ``a`` and ``b``."""
    first, second = ends(low_a, high_a), ends(low_b, high_b)
    return checked(*product_range(first, codes_of(a.dtype), second, codes_of(b.dtype)))


def check_widths(**ranges: tuple[Array, Array]) -> None:
    """Refuses ranges of no width; one of which an end is no number has none."""
    for name, limits in ranges.items():
        low, high = (flushed(number(end)) for end in limits)
        if not high > low:
            raise RunError(f"max_{name} must be larger than min_{name}.")


def to_int32(values: Array) -> Array:
    """Exact whole numbers as int32, wrapping round as machine arithmetic does."""
    return np.asarray(values.astype(np.int64).astype(np.int32))


def _shifted_window(size: int, taps: int, stride: int, padding: str) -> tuple[Window, int]:
    """The window of a quantized convolution, and where its first place begins (negative: in the padding).

    The original centres what the windows cover on the image, so that strides larger than the filter skip pixels on
    both sides, other than in Conv2D.
    """
    output = windows([size], [taps], [stride], padding)[0].output
    extra = (output - 1) * stride + taps - size + (1 if padding == "VALID" else 0)
    offset = int(extra / 2)
    return Window(taps, stride, 1, 0, 0, output), -offset


@kernel("QuantizedConv2D")
def quantized_conv2d(
    input: Array,
    filter: Array,
    min_input: Array,
    max_input: Array,
    min_filter: Array,
    max_filter: Array,
    *,
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] = (1, 1, 1, 1),
) -> Quantized:
    """int32 sums of products of centred codes; outside the image is zero."""
    steps = spatial(strides, "NHWC")
    if steps[0] != steps[1]:
        raise RunError("Current implementation only supports equal length strides in the row and column dimensions.")
    if tuple(dilations) != (1, 1, 1, 1):
        raise RunError("QuantizedConv2D does not dilate")
    if input.ndim != 4 or filter.ndim != 4 or input.shape[3] != filter.shape[2]:
        raise RunError(f"shapes that do not fit: input {list(input.shape)} and filter {list(filter.shape)}")
    x, weights = centered(input, min_input, max_input), centered(filter, min_filter, max_filter)
    zero = to_code(0.0, *ends(min_input, max_input), codes_of(input.dtype))
    held = max(zero, 0) & 255  # what a byte holds of it; borders are not 0 where the range lies below zero
    border = float(held - max(zero, 0))
    spans = []
    for axis in (0, 1):
        span, start = _shifted_window(input.shape[1 + axis], filter.shape[axis], steps[axis], padding)
        last = start + (span.output - 1) * span.stride + span.taps
        before, after = max(-start, 0), max(last - input.shape[1 + axis], 0)
        pairs = [(0, 0)] * 4
        pairs[1 + axis] = (before, after)
        x = np.pad(x, pairs, constant_values=border)
        x = np.take(x, range(start + before, last + before), axis=1 + axis)
        spans.append(span)
    total = np.zeros(reserve((x.shape[0], spans[0].output, spans[1].output, filter.shape[3]), np.float64))
    for index, where in taps(spans):
        total += x[where] @ weights[index]
    low, high = _product_range(input, min_input, max_input, filter, min_filter, max_filter)
    return ranged(to_int32(total), low, high)


@kernel("QuantizedMatMul")
def quantized_mat_mul(
    a: Array,
    b: Array,
    min_a: Array,
    max_a: Array,
    min_b: Array,
    max_b: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Quantized:
    for name, value in (("In[0]", a), ("In[1]", b)):
        if value.ndim != 2:
            raise RunError(f"{name} is not a matrix")
    check_widths(a=(min_a, max_a), b=(min_b, max_b))
    x, y = centered(a, min_a, max_a), centered(b, min_b, max_b)
    x, y = x.T if transpose_a else x, y.T if transpose_b else y
    if x.shape[1] != y.shape[0]:
        raise RunError(f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}")
    reserve((x.shape[0], y.shape[1]), np.int64)
    return ranged(to_int32(x @ y), *_product_range(a, min_a, max_a, b, min_b, max_b))


@kernel("QuantizedMul")
def quantized_mul(x: Array, y: Array, min_x: Array, max_x: Array, min_y: Array, max_y: Array) -> Quantized:
    check_widths(x=(min_x, max_x), y=(min_y, max_y))
    reserve(np.broadcast_shapes(x.shape, y.shape), np.int64)
    values = centered(x, min_x, max_x) * centered(y, min_y, max_y)
    return ranged(to_int32(values), *_product_range(x, min_x, max_x, y, min_y, max_y))


@kernel("QuantizedAdd")
def quantized_add(x: Array, y: Array, min_x: Array, max_x: Array, min_y: Array, max_y: Array) -> Quantized:
    """int32 sums in a wide range."""
    check_widths(x=(min_x, max_x), y=(min_y, max_y))
    if not x.size or not y.size:
        raise RunError("Must have some elements to add")
    reserve(np.broadcast_shapes(x.shape, y.shape), np.int64)
    first, second = ends(min_x, max_x), ends(min_y, max_y)
    wanted = checked(*sum_range(*first, *second))
    # the first single number is not put on the line through two codes
    is_single = (x.size == 1, y.size == 1 and x.size != 1)
    terms = [
        moved(codes, limits, codes_of(codes.dtype), wanted, WIDE)
        if single
        else moved_on_line(codes, limits, codes_of(codes.dtype), wanted)
        for codes, limits, single in zip((x, y), (first, second), is_single, strict=True)
    ]
    return ranged(to_int32(terms[0] + terms[1]), *wanted)


@kernel("QuantizedBiasAdd")
def quantized_bias_add(
    input: Array, bias: Array, min_input: Array, max_input: Array, min_bias: Array, max_bias: Array
) -> Quantized:
    if bias.ndim != 1 or input.shape[-1:] != bias.shape:
        raise RunError(f"Must provide as many biases as the last dimension of the input tensor: {list(bias.shape)}")
    first, second = ends(min_input, max_input), ends(min_bias, max_bias)
    low, high = checked(*bias_range(*first, *second))
    total = np.full(input.shape, limited_code(0.0, low, high, WIDE), dtype=np.int64)
    for codes, limits in ((input, first), (bias, second)):
        floats = dequantized_first(codes, *limits, codes_of(codes.dtype))
        total = total + quantized_first(floats, low, high, WIDE)
    return ranged(to_int32(total), low, high)


def _between(features: Array, low: Array, high: Array, top: float | None) -> Quantized:
    kind = codes_of(features.dtype)
    limits = ends(low, high)
    bottom = limited_code(0.0, *limits, kind)
    result = np.maximum(features, features.dtype.type(bottom))
    if top is not None:
        result = np.minimum(result, features.dtype.type(limited_code(top, *limits, kind)))
    return ranged(np.asarray(result), number(low), number(high))


@kernel("QuantizedRelu")
def quantized_relu(features: Array, min_features: Array, max_features: Array) -> Quantized:
    """The range is handed on as it was."""
    return _between(features, min_features, max_features, None)


@kernel("QuantizedRelu6")
def quantized_relu6(features: Array, min_features: Array, max_features: Array) -> Quantized:
    return _between(features, min_features, max_features, 6.0)


@kernel("QuantizedReluX")
def quantized_relu_x(features: Array, max_value: Array, min_features: Array, max_features: Array) -> Quantized:
    return _between(features, min_features, max_features, number(max_value))


def _pool_windows(x: Array, ksize: Sequence[int], strides: Sequence[int], padding: str) -> tuple[Window, ...]:
    batch, depth, sizes = split_axes(ksize, "NHWC")
    batch_stride, depth_stride, steps = split_axes(strides, "NHWC")
    if batch != 1 or batch_stride != 1:
        raise RunError("Pooling is not yet supported on the batch dimension.")
    if depth != 1 or depth_stride != 1:
        raise RunError("Non-spatial pooling is not yet supported. Volunteers? :)")
    return windows(x.shape[1:-1], sizes, steps, padding)


def _mean_codes(codes: Array, spans: Sequence[Window]) -> Array:
    """The mean of the codes, cut to whole ones; padding does not count."""
    wide = padded(codes.astype(np.int64), spans)
    total = np.zeros((codes.shape[0], *(w.output for w in spans), codes.shape[-1]), dtype=np.int64)
    for _, where in taps(spans):
        total += wide[where]
    mean: Array = np.sign(total) * (np.abs(total) // inside_counts(codes.shape[1:-1], spans))
    return mean.astype(codes.dtype)


def _register_pool(op: str, pooled: Callable[[Array, Sequence[Window]], Array]) -> None:
    @kernel(op)
    def pool(
        input: Array, min_input: Array, max_input: Array, *, ksize: Sequence[int], strides: Sequence[int], padding: str
    ) -> Quantized:
        codes = pooled(input, _pool_windows(input, ksize, strides, padding))
        return ranged(codes, number(min_input), number(max_input))


_register_pool("QuantizedMaxPool", largest_in_windows)
_register_pool("QuantizedAvgPool", _mean_codes)


@kernel("QuantizedReshape")
def quantized_reshape(tensor: Array, shape: Array, input_min: Array, input_max: Array) -> Quantized:
    if input_min.shape not in ((), (1,)) or input_max.shape not in ((), (1,)):
        raise ValueError(f"input_min and input_max are one number each, not {input_min.shape} and {input_max.shape}")
    return reshape(tensor, np.array(ints(shape))), input_min.reshape(()), input_max.reshape(())


@kernel("QuantizedConcat")
def quantized_concat(concat_dim: Array, *values_and_ranges: Array, N: int) -> Quantized:
    """The values joined in the range that holds all of theirs; those of another range are converted."""
    values, lows, highs = (values_and_ranges[i * N : (i + 1) * N] for i in range(3))
    if any(end.size != 1 for end in (*lows, *highs)):
        raise ValueError("input_mins and input_maxes must have one element each")
    if concat_dim.size != 1 or not 0 <= int(concat_dim.item()) < max(values[0].ndim, 1):
        raise ValueError(f"concat_dim must lie in [0, {values[0].ndim}), not {concat_dim.tolist()}")
    kind = codes_of(values[0].dtype)
    spans = [ends(*limits) for limits in zip(lows, highs, strict=True)]
    low, high = joint_range([span[0] for span in spans], [span[1] for span in spans], kind)
    return _joined(values, spans, (low, high), concat_dim)


@kernel("QuantizedConcatV2")
def quantized_concat_v2(*operands: Array, N: int) -> Quantized:
    """As oneDNN has it: unsigned codes count from zero, and pictures that all have one range keep it and their codes.

    Operands: ``N`` values (one or more), the axis, ``N`` lower and ``N`` upper ends, float32 numbers.
    """
    values, axis, lows, highs = operands[:N], operands[N], operands[N + 1 : 2 * N + 1], operands[2 * N + 1 :]
    if any(end.size != 1 for end in (*lows, *highs)):
        raise ValueError("input_mins and input_maxes must have one element each")
    spans = [ends(*limits) for limits in zip(lows, highs, strict=True)]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    if len(set(spans)) > 1 or values[0].ndim != 4:
        high = max(abs(low), abs(high)) if codes_of(values[0].dtype).signed else high
        low = -high if codes_of(values[0].dtype).signed else 0.0
    return _joined(values, spans, (low, high), axis)


def _joined(
    values: Sequence[Array], spans: Sequence[tuple[float, float]], to: tuple[float, float], axis: Array
) -> Quantized:
    """Codes of several ranges in one, one after another; those that have it already stay what they are."""
    kind = codes_of(values[0].dtype)
    converted = [
        codes if span == to else quantized_first(dequantized_first(codes, *span, kind), *to, kind)
        for codes, span in zip(values, spans, strict=True)
    ]
    return ranged(concatenated(tuple(converted), axis), *to)
