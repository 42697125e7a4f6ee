"""Biases and normalisation: BiasAdd, the batch norms, LRN, and the gradients that training graphs hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, axis_of, is_small_float, widened
from pocketgraph.kernels.nn.activations import FUNCTIONS
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import from_channels_last, to_channels_last


def _along_channels(values: Array, rank: int, data_format: str) -> Array:
    """A vector of one value a channel, shaped to broadcast over a tensor of this rank."""
    if data_format.startswith("NC") and rank > 2:
        return values.reshape(1, -1, *[1] * (rank - 2))
    return values


def _channels(value: Array, data_format: str) -> int:
    return axis_of(1 if data_format.startswith("NC") and value.ndim > 2 else -1, value.ndim)


@kernel("BiasAdd")
def bias_add(value: Array, bias: Array, *, data_format: str = "NHWC") -> Array:
    """One bias a channel: the last axis, or the second in NCHW."""
    if value.ndim < 2 or bias.ndim != 1 or value.shape[_channels(value, data_format)] != bias.size:
        raise ValueError(f"shapes that do not fit: value {list(value.shape)} and bias {list(bias.shape)}")
    total = widened(value) + _along_channels(widened(bias), value.ndim, data_format)
    return np.asarray(total).astype(value.dtype, copy=False)


kernel("BiasAddV1")(lambda value, bias: bias_add(value, bias))


@kernel("BiasAddGrad")
def bias_add_grad(out_backprop: Array, *, data_format: str = "NHWC") -> Array:
    if out_backprop.ndim < 2:
        raise ValueError(f"Input tensor must be at least 2D: {list(out_backprop.shape)}")
    kept = _channels(out_backprop, data_format)
    axes = tuple(a for a in range(out_backprop.ndim) if a != kept)
    kind = out_backprop.dtype if out_backprop.dtype.kind in "iuc" else np.dtype(np.float64)
    plain = out_backprop.dtype == np.float32 and out_backprop.flags.c_contiguous and out_backprop.size > 0
    if plain and kept == out_backprop.ndim - 1:
        return _sum_of_rows(out_backprop.reshape(-1, out_backprop.shape[-1]))
    return np.asarray(widened(out_backprop).sum(axis=axes, dtype=kind)).astype(out_backprop.dtype)


ROWS_TOGETHER = 64
"""Rows that are summed up in float32; their sums are in float64, so that long columns lose nothing."""


def _sum_of_rows(rows: Array) -> Array:
    """The sum of each column of a float32 matrix."""
    even = len(rows) - len(rows) % ROWS_TOGETHER
    sums = rows[:even].reshape(ROWS_TOGETHER, -1).sum(axis=0).reshape(-1, rows.shape[1])  # far apart: long runs
    return np.asarray(sums.sum(axis=0, dtype=np.float64) + rows[even:].sum(axis=0, dtype=np.float64)).astype(np.float32)


@kernel("FusedBatchNorm", "FusedBatchNormV2")
def fused_batch_norm(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[Array, ...]:
    """(y, batch mean, batch variance, and the two that the gradient wants: mean, variance).

    y = (x - mean) * scale / sqrt(variance + epsilon) + offset. Training takes both from the batch; the variance it
    hands out is the unbiased one, or its running average when ``exponential_avg_factor`` is not 1.
    """
    channels = x.shape[_channels(x, data_format)]
    if scale.shape != (channels,) or offset.shape != (channels,):
        raise ValueError(f"shapes that do not fit: x {list(x.shape)}, scale {list(scale.shape)}")
    wide, kind = widened(x), scale.dtype
    if is_training:
        axes = tuple(a for a in range(x.ndim) if a != _channels(x, data_format))
        count = x.size // max(channels, 1)
        # not mean(), which warns of batches without samples whatever is switched off
        center = wide.sum(axis=axes, dtype=np.float64) / np.float64(count)
        spread = np.square(wide - _along_channels(center, x.ndim, data_format)).sum(axis=axes) / np.float64(count)
        handed = handed_out(center, spread, count, (mean, variance), exponential_avg_factor, kind)
        out_mean, out_variance, used_mean, used_variance = handed
    else:
        if mean.shape != (channels,) or variance.shape != (channels,):
            raise ValueError(f"shapes that do not fit: x {list(x.shape)}, mean {list(mean.shape)}")
        used_mean, used_variance, out_mean, out_variance = mean, variance, mean, variance
    gain = scale / np.sqrt(used_variance + kind.type(epsilon))
    y = (wide - _along_channels(used_mean, x.ndim, data_format)) * _along_channels(gain, x.ndim, data_format)
    y = y + _along_channels(offset, x.ndim, data_format)
    return y.astype(x.dtype, copy=False), out_mean, out_variance, used_mean, used_variance


def handed_out(
    center: Array, spread: Array, count: int, averages: Sequence[Array], factor: float, kind: np.dtype[Any]
) -> tuple[Array, Array, Array, Array]:
    """What training's batch norms hand out besides: (mean, unbiased variance, and the two that the gradient wants).

    Args:
        center, spread: the batch's mean and its variance, that of the sample, float64 [channels].
        count: pixels of the batch.
        averages: the running (mean, variance), empty where there are none.
        factor: how much of the new ones goes into the averages; 1: there are none.
        kind: the type of all four.
    """
    used_mean, used_variance = center.astype(kind), spread.astype(kind)
    unbiased = (spread * (count / max(count - 1, 1))).astype(kind)
    if factor == 1 or not averages[0].size:
        return used_mean, unbiased, used_mean, used_variance
    part, (mean, variance) = kind.type(factor), averages
    moved = (1 - part) * mean + part * used_mean, (1 - part) * variance + part * unbiased
    return (*moved, used_mean, used_variance)


@kernel("FusedBatchNormV3")
@wraps(fused_batch_norm)
def fused_batch_norm_v3(*inputs: Array, **attributes: Any) -> tuple[Array, ...]:
    """As the earlier forms, with a sixth output that only GPUs fill."""
    return (*fused_batch_norm(*inputs, **attributes), np.zeros((), dtype=np.float32))


@kernel("_FusedBatchNormEx")
def fused_batch_norm_ex(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *side_input: Array,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    activation_mode: str = "Identity",
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[Array, ...]:
    """What Grappler makes of FusedBatchNormV3: the side input, if any, is added, then the activation is taken."""
    y, *others = fused_batch_norm(
        x, scale, offset, mean, variance,
        epsilon=epsilon, exponential_avg_factor=exponential_avg_factor, data_format=data_format,
        is_training=is_training,
    )  # fmt: skip
    for more in side_input:
        if more.shape != x.shape:
            raise RunError(f"side_input shape must be equal to input shape: {list(more.shape)} != {list(x.shape)}")
        y = y + more
    if activation_mode == "Relu":
        y = FUNCTIONS["Relu"](widened(y)).astype(x.dtype, copy=False)
    elif activation_mode != "Identity":
        raise RunError(f"Unsupported activation mode: {activation_mode}")
    return (y, *others, np.zeros(0, np.float32))


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(
    y_backprop: Array,
    x: Array,
    scale: Array,
    reserve_space_1: Array,
    reserve_space_2: Array,
    *reserve_space_3: Array,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[Array, ...]:
    """(gradients of x, scale and offset, and two empty ones)."""
    dy = to_channels_last(y_backprop, data_format).astype(np.float64)
    wide = to_channels_last(x, data_format).astype(np.float64)
    if any(value.shape != wide.shape[-1:] for value in (scale, reserve_space_1, reserve_space_2)):
        raise ValueError(f"scale and reserve spaces must have an element for each of {wide.shape[-1]} channels")
    axes = tuple(range(wide.ndim - 1))
    inverse = 1 / np.sqrt(reserve_space_2.astype(np.float64) + epsilon)
    centered = wide - reserve_space_1
    by_scale, by_offset = (dy * centered * inverse).sum(axis=axes), dy.sum(axis=axes)
    gain = scale * inverse
    if is_training:
        count = max(wide.size // max(scale.size, 1), 1)
        by_x = gain * (dy - by_offset / count - centered * inverse * by_scale / count)
    else:
        by_x = gain * dy
    empty = np.zeros(0, dtype=scale.dtype)
    by_input = from_channels_last(by_x.astype(x.dtype), data_format)
    return by_input, by_scale.astype(scale.dtype), by_offset.astype(scale.dtype), empty, empty


@kernel("BatchNormWithGlobalNormalization")
def batch_norm_with_global_normalization(
    t: Array, m: Array, v: Array, beta: Array, gamma: Array, *, variance_epsilon: float, scale_after_normalization: bool
) -> Array:
    """The oldest batch norm: (t - m) / sqrt(v + epsilon), times gamma when asked, plus beta."""
    if not t.shape[-1:] == m.shape == v.shape == beta.shape:
        raise ValueError(f"shapes that do not fit: {list(t.shape)} and {list(m.shape)}")
    kind = t.dtype.type
    gain = kind(1) / np.sqrt(v + kind(variance_epsilon))
    if scale_after_normalization:
        gain = gain * gamma
    return np.asarray((t - m) * gain + beta).astype(t.dtype, copy=False)


@kernel("BatchNormWithGlobalNormalizationGrad")
def batch_norm_with_global_normalization_grad(
    t: Array,
    m: Array,
    v: Array,
    gamma: Array,
    backprop: Array,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    """The gradients of the oldest batch norm by t, m, v, beta and gamma; the last is 0 when gamma was not used."""
    if t.shape != backprop.shape or t.ndim != 4 or not t.shape[-1:] == m.shape == v.shape == gamma.shape:
        raise ValueError(f"shapes that do not fit: {list(t.shape)}, {list(m.shape)} and {list(backprop.shape)}")
    wide, dy = t.astype(np.float64), backprop.astype(np.float64)
    inverse = 1 / np.sqrt(v.astype(np.float64) + variance_epsilon)
    axes = tuple(range(t.ndim - 1))
    by_beta, shared = dy.sum(axis=axes), (dy * (wide - m)).sum(axis=axes)
    gain = inverse * gamma if scale_after_normalization else inverse
    by_gamma = shared * inverse if scale_after_normalization else np.zeros_like(shared)
    found = (dy * gain, -by_beta * gain, shared * -0.5 * inverse * inverse * gain, by_beta, by_gamma)
    first, *others = (value.astype(t.dtype) for value in found)
    return (first, others[0], others[1], others[2], others[3])


def _neighbour_sums(x: Array, radius: int) -> Array:
    """Along the last axis, the sum of each element and its ``radius`` neighbours on both sides."""
    padded = np.zeros((*x.shape[:-1], x.shape[-1] + 2 * radius), dtype=x.dtype)
    padded[..., radius : radius + x.shape[-1]] = x
    total = np.zeros_like(x)
    for shift in range(2 * radius + 1):
        total += padded[..., shift : shift + x.shape[-1]]
    return total


@kernel("LRN")
def lrn(input: Array, *, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5) -> Array:
    """x / (bias + alpha * sum of squares over the neighbouring channels) ^ beta."""
    kind = input.dtype.type
    norm = kind(bias) + kind(alpha) * _neighbour_sums(input * input, min(depth_radius, input.shape[-1]))
    return np.asarray(input * _to_the_minus(norm, beta)).astype(input.dtype, copy=False)


def _to_the_minus(norm: Array, beta: float) -> Array:
    """norm ^ -beta, by its logarithm, so that it is NaN where ``norm`` is negative, unless beta is 1.

    16-bit floats are rounded after each step: the logarithm, its product, the exponential.
    """
    kind = norm.dtype.type
    if not is_small_float(norm.dtype) or beta in (0.5, 1):
        powers = np.asarray(widened(norm) ** np.float64(-beta).astype(widened(norm).dtype)).astype(norm.dtype)
        return powers if beta == 1 else np.where(norm < 0, kind(np.nan), powers)
    scaled = np.log(widened(norm)).astype(norm.dtype) * kind(-beta)
    return np.asarray(np.exp(widened(scaled))).astype(norm.dtype)


@kernel("LRNGrad")
def lrn_grad(
    input_grads: Array,
    input_image: Array,
    output_image: Array,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Array:
    x, dy = widened(input_image), widened(input_grads)
    radius = min(depth_radius, x.shape[-1])
    norm = bias + alpha * _neighbour_sums(x * x, radius)
    shared = _neighbour_sums(dy * widened(output_image) / norm, radius)
    return np.asarray(dy * norm ** (-beta) - 2 * alpha * beta * x * shared).astype(input_grads.dtype)
