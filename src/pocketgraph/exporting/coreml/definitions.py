"""What Core ML's operators compute, in NumPy, where coremltools itself cannot tell; from the pages of its reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.graph.tensor import Array


def _windows(x: Array, size: Any, strides: Any, dilations: Any, before_after: Any, fill: float) -> Array:
    """Windows [n, channels, *places, *size] of an image [n, channels, *spatial]."""
    count = len(size)
    pads = [(0, 0), (0, 0), *((int(before_after[2 * i]), int(before_after[2 * i + 1])) for i in range(count))]
    padded = np.pad(x, pads, constant_values=fill)
    reach = tuple((int(s) - 1) * int(d) + 1 for s, d in zip(size, dilations, strict=True))
    found = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, 2 + count)))
    steps = tuple(slice(None, None, int(stride)) for stride in strides)
    inside = tuple(slice(None, None, int(dilation)) for dilation in dilations)
    chosen = (slice(None), slice(None), *steps, *inside)
    return np.asarray(found[chosen])


def _amounts(x: Array, size: Any, strides: Any, dilations: Any, pad_type: str, pad: Any) -> list[int]:
    """What is padded, before and after by axis."""
    count = len(size)
    if pad_type == "custom":
        return [int(number) for number in pad]
    if pad_type == "valid":
        return [0] * 2 * count
    made = []
    for axis in range(count):
        reach = (int(size[axis]) - 1) * int(dilations[axis]) + 1
        missing = max(
            (-(-x.shape[2 + axis] // int(strides[axis])) - 1) * int(strides[axis]) + reach - x.shape[2 + axis], 0
        )
        made += [missing // 2, missing - missing // 2] if pad_type == "same" else [missing - missing // 2, missing // 2]
    return made


def convolution(
    x: Array, weight: Array, strides: Any, pad_type: str, pad: Any, dilations: Any, groups: Any, bias: Any = None
) -> Array:
    """A convolution of an image [n, channels, *spatial] with weights [out, in, *size]."""
    size = weight.shape[2:]
    groups = int(groups)
    amounts = _amounts(x, size, strides, dilations, str(pad_type), pad)
    windows = _windows(x.astype(np.float32), size, strides, dilations, amounts, 0.0)
    n, channels, *places = windows.shape[: 2 + len(size)]
    inside = channels // groups
    count = weight.shape[0] // groups
    made = []
    for group in range(groups):
        part = np.moveaxis(windows[:, group * inside : (group + 1) * inside], 1, 1 + len(size))
        rows = part.reshape(-1, inside * int(np.prod(size)))
        filters = weight[group * count : (group + 1) * count].astype(np.float32).reshape(count, -1)
        made.append((rows @ filters.T).reshape(n, *places, count))
    found = np.moveaxis(np.concatenate(made, -1), -1, 1)
    if bias is not None:
        found = found + np.asarray(bias, np.float32).reshape(-1, *[1] * len(size))
    return found.astype(x.dtype)


def transposed_convolution(
    x: Array, weight: Array, strides: Any, pad_type: str, pad: Any, dilations: Any, groups: Any, bias: Any = None,
    output_shape: Any = None,
) -> Array:  # fmt: skip
    """The gradient of a convolution with weights [in, out / groups, *size], cut off by ``pad``."""
    size = weight.shape[2:]
    count = len(size)
    groups = int(groups)
    made = weight.shape[1]
    spatial = [(x.shape[2 + i] - 1) * int(strides[i]) + (size[i] - 1) * int(dilations[i]) + 1 for i in range(count)]
    found = np.zeros((x.shape[0], made * groups, *spatial), np.float32)
    inside = x.shape[1] // groups
    for group in range(groups):
        rows = x[:, group * inside : (group + 1) * inside].astype(np.float32)
        part = weight[group * inside : (group + 1) * inside].astype(np.float32)
        for place in np.ndindex(*size):
            tap = (slice(None), slice(None), *place)
            share = np.einsum("nc...,co->no...", rows, part[tap])
            at = (
                slice(None),
                slice(group * made, (group + 1) * made),
                *(
                    slice(p * int(d), p * int(d) + (x.shape[2 + i] - 1) * int(s) + 1, int(s))
                    for i, (p, d, s) in enumerate(zip(place, dilations, strides, strict=True))
                ),
            )
            found[at] += share
    if bias is not None:
        found = found + np.asarray(bias, np.float32).reshape(-1, *[1] * count)
    amounts = [int(number) for number in pad] if str(pad_type) == "custom" else [0] * 2 * count
    kept = slice(None), slice(None), *(slice(amounts[2 * i], spatial[i] - amounts[2 * i + 1]) for i in range(count))
    return np.ascontiguousarray(found[kept]).astype(x.dtype)


def max_pool(x: Array, kernel_sizes: Any, strides: Any, pad_type: str, pad: Any, ceil_mode: Any = False) -> Array:
    """The largest value of each window."""
    ones = [1] * len(kernel_sizes)
    amounts = _amounts(x, kernel_sizes, strides, ones, str(pad_type), pad)
    windows = _windows(x, kernel_sizes, strides, ones, amounts, -np.inf)
    return np.asarray(windows.max(tuple(range(-len(ones), 0))))


def avg_pool(
    x: Array, kernel_sizes: Any, strides: Any, pad_type: str, pad: Any, exclude_padding_from_average: Any = False,
    ceil_mode: Any = False,
) -> Array:  # fmt: skip
    """The mean of each window, of the image's own values alone where padding is excluded."""
    ones = [1] * len(kernel_sizes)
    amounts = _amounts(x, kernel_sizes, strides, ones, str(pad_type), pad)
    axes = tuple(range(-len(ones), 0))
    sums = _windows(x.astype(np.float32), kernel_sizes, strides, ones, amounts, 0.0).sum(axes)
    if not exclude_padding_from_average:
        return np.asarray(sums / np.prod(np.asarray(kernel_sizes))).astype(x.dtype)
    counts = _windows(np.ones(x.shape, np.float32), kernel_sizes, strides, ones, amounts, 0.0).sum(axes)
    return np.asarray(sums / counts).astype(x.dtype)


def batch_norm(
    x: Array, mean: Array, variance: Array, gamma: Any = None, beta: Any = None, epsilon: Any = 1e-5
) -> Array:
    """``gamma · (x − mean) / √(variance + epsilon) + beta`` by channel."""
    shape = (-1, *[1] * (x.ndim - 2))
    factor = (1.0 if gamma is None else gamma.astype(np.float32)) / np.sqrt(variance.astype(np.float32) + epsilon)
    found = (x.astype(np.float32) - mean.reshape(shape)) * factor.reshape(shape)
    return np.asarray(found + (0.0 if beta is None else beta.reshape(shape))).astype(x.dtype)


def local_response_norm(x: Array, size: Any, alpha: Any, beta: Any, k: Any) -> Array:
    """``x / (k + alpha / size · Σ x²)^beta``, the sum going over ``size`` channels around each."""
    squares = np.pad(np.square(x.astype(np.float32)), [(0, 0), ((int(size) - 1) // 2, int(size) // 2), (0, 0), (0, 0)])
    sums = sum(squares[:, place : place + x.shape[1]] for place in range(int(size)))
    return np.asarray(x / np.power(k + alpha / float(size) * sums, beta)).astype(x.dtype)


def _reduction(of: Callable[..., Any]) -> Callable[..., Array]:
    """Something over axes; coremltools' own inference fails with NumPy 2.4, which takes no np.bool for a bool."""

    def reduce(x: Array, axes: Any = None, keep_dims: Any = False) -> Array:
        over = tuple(range(x.ndim)) if axes is None else tuple(int(axis) for axis in axes)
        return np.asarray(of(x, axis=over, keepdims=bool(keep_dims))).astype(x.dtype)

    return reduce


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod,
    "l1_norm": lambda x, **how: np.sum(np.abs(x), **how), "sum_square": lambda x, **how: np.sum(np.square(x), **how),
    "l2_norm": lambda x, **how: np.sqrt(np.sum(np.square(x), **how)),
    "log_sum": lambda x, **how: np.log(np.sum(x, **how)),
    "log_sum_exp": lambda x, **how: np.log(np.sum(np.exp(x), **how)),
}  # fmt: skip


def silu(x: Array) -> Array:
    """``x · sigmoid(x)``."""
    return np.asarray(x / (1 + np.exp(-x)))


def resize_bilinear(x: Array, target_size_height: Any, target_size_width: Any, sampling_mode: str) -> Array:
    """The grid points of the modes DEFAULT and STRICT_ALIGN_CORNERS, in two steps."""
    for axis, wanted in ((2, int(target_size_height)), (3, int(target_size_width))):
        size = x.shape[axis]
        spacing = (size - 1) / (wanted - 1) if sampling_mode == "STRICT_ALIGN_CORNERS" else (
            (size - size / wanted) / (wanted - 1)
        )  # fmt: skip
        places = np.clip(np.arange(wanted) * spacing, 0, size - 1).astype(np.float32)
        below = np.floor(places).astype(int)
        shape = [1] * 4
        shape[axis] = wanted
        part = (places - below).reshape(shape)
        low = np.take(x, below, axis).astype(np.float32)
        high = np.take(x, np.minimum(below + 1, size - 1), axis).astype(np.float32)
        x = (low + (high - low) * part).astype(x.dtype)
    return x


def upsample_nearest(x: Array, scale_factor_height: Any, scale_factor_width: Any) -> Array:
    """Each pixel as many times."""
    return x.repeat(int(scale_factor_height), 2).repeat(int(scale_factor_width), 3)


def depth_to_space(x: Array, block_size: Any) -> Array:
    """Channels spread over blocks of pixels: the place in the block is the channel's slowest part."""
    n, c, h, w = x.shape
    b = int(block_size)
    parted = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    return np.asarray(parted.reshape(n, c // (b * b), h * b, w * b))


def space_to_depth(x: Array, block_size: Any) -> Array:
    """The inverse of depth_to_space."""
    n, c, h, w = x.shape
    b = int(block_size)
    parted = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return np.asarray(parted.reshape(n, c * b * b, h // b, w // b))


def squeeze(x: Array, axes: Any = None) -> Array:
    """Axes of size 1 taken out, by default all."""
    return np.squeeze(x, None if axes is None else tuple(int(axis) for axis in axes))


def reverse_sequence(x: Array, lengths: Array, seq_axis: Any = 0, batch_axis: Any = 0) -> Array:
    """The first so many steps of each sequence the other way round."""
    made = np.array(np.moveaxis(x, (int(batch_axis), int(seq_axis)), (0, 1)))
    for row, count in zip(made, np.asarray(lengths).reshape(-1), strict=True):
        row[: int(count)] = row[: int(count)][::-1].copy()
    return np.moveaxis(made, (0, 1), (int(batch_axis), int(seq_axis)))


def topk(
    x: Array, k: Any, axis: Any = -1, ascending: Any = False, sort: Any = True, return_indices: Any = True,
    output_indices_dtype: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """The ``k`` largest (smallest) along an axis and where they are; of equal ones the first comes first."""
    order = np.argsort(x if ascending else -x, axis=int(axis), kind="stable")
    places = np.take(order, np.arange(int(k)), int(axis))
    return np.take_along_axis(x, places, int(axis)), places.astype(np.int32)


def one_hot(
    indices: Array, one_hot_vector_size: Any, axis: Any = -1, on_value: Any = np.int32(1), off_value: Any = np.int32(0)
) -> Array:
    """``on_value`` at each index; an index outside has none."""
    hit = np.asarray(indices)[..., None] == np.arange(int(one_hot_vector_size))
    return np.moveaxis(np.where(hit, on_value, off_value), -1, int(axis))


def gather_nd(x: Array, indices: Array, batch_dims: Any = 0, validate_indices: Any = False) -> Array:
    """The elements at the points in the last axis of ``indices``."""
    return np.asarray(x[tuple(np.moveaxis(np.asarray(indices), -1, 0))])


def scatter_nd(data: Array, indices: Array, updates: Array, mode: str, validate_indices: Any = False) -> Array:
    """A copy of ``data`` in which the elements at points are others, or have others added."""
    made = np.array(data)
    place = tuple(np.moveaxis(np.asarray(indices), -1, 0))
    if str(mode) == "update":
        made[place] = updates
    else:
        {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[str(mode)].at(made, place, updates)
    return made


def lstm(
    x: Array, initial_h: Array, initial_c: Array, weight_ih: Array, weight_hh: Array, bias: Any = None,
    peephole: Any = None, output_sequence: Any = False, **_: Any,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Sigmoid gates in the order input, forget, output, cell; tanh for cell and output."""
    h, c = initial_h.astype(np.float32), initial_c.astype(np.float32)
    looks = [0.0] * 3 if peephole is None else list(np.split(np.asarray(peephole, np.float32), 3))
    outputs = []
    for row in x.astype(np.float32):
        gates = row @ weight_ih.T + h @ weight_hh.T + (0 if bias is None else bias)
        into, forget, out, cell = np.split(gates, 4, 1)
        into, forget = _sigmoid(into + looks[0] * c), _sigmoid(forget + looks[1] * c)
        c = forget * c + into * np.tanh(cell)
        h = _sigmoid(out + looks[2] * c) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs if output_sequence else outputs[-1:]).astype(x.dtype), h.astype(x.dtype), c.astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def stored_codes(quantized_data: Array, scale: Any, zero_point: Any, axis: Any) -> Array:
    """``scale · (code − zero point)``."""
    shape = [1] * quantized_data.ndim
    if np.size(scale) > 1:
        shape[int(axis)] = -1
    steps, zeros = (np.asarray(part, np.float32) for part in (scale, zero_point))
    if steps.size > 1:
        steps, zeros = steps.reshape(shape), zeros.reshape(shape)
    made = (quantized_data.astype(np.float32) - zeros) * steps
    return np.asarray(made).astype(np.asarray(scale).dtype)


def table_codes(indices: Array, lut: Array, shape: Any) -> Array:
    """The table's number for each code of eight bits."""
    return lut[np.asarray(indices).view(np.uint8)].reshape([int(size) for size in shape])


def dequantize(input: Array, scale: Any, zero_point: Any = 0, axis: Any = 0) -> Any:
    """As constexpr_affine_dequantize, of a tensor."""
    return stored_codes(input, scale, np.int8(0) if zero_point is None else zero_point, axis)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "conv": convolution, "conv_transpose": transposed_convolution, "max_pool": max_pool, "avg_pool": avg_pool,
    "batch_norm": batch_norm, "local_response_norm": local_response_norm, "silu": silu, "resize_bilinear":
    resize_bilinear, "upsample_nearest_neighbor": upsample_nearest, "depth_to_space": depth_to_space,
    "space_to_depth": space_to_depth, "squeeze": squeeze, "reverse_sequence": reverse_sequence, "topk": topk,
    "one_hot": one_hot, "gather_nd": gather_nd, "scatter_nd": scatter_nd, "lstm": lstm, "constexpr_affine_dequantize":
    stored_codes, "constexpr_lut_to_dense": table_codes, "dequantize": dequantize,
    **{f"reduce_{name}": _reduction(of) for name, of in _REDUCTIONS.items()},
}  # fmt: skip
"""What operators compute, by their names; each takes its inputs by name."""
