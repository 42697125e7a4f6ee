"""Convolutions of uniformly quantized tensors, over any number of axes, with holes, groups and any order of axes.

Source: as uniform_codes.py says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import QINT32
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32
from pocketgraph.kernels.quantized.uniform import Scale, found_scale, limited, rescaled, scale_along, wrapped
from pocketgraph.kernels.registry import kernel
from pocketgraph.protobuf.wire import VARINT, payloads


class _ConvolutionLayout(NamedTuple):
    """Which axis is what, as the attribute ``dimension_numbers`` says: batch, channels, then places, of each tensor."""

    input: tuple[int, ...]
    kernel: tuple[int, ...]  # outputs, inputs, places
    output: tuple[int, ...]


def layout(message: bytes | str, rank: int) -> _ConvolutionLayout:
    """The layout of a UniformQuantizedConvolutionDimensionNumbersAttr; batch and channels first where it is empty.

    Raises:
        RunError: it does not name each axis once.
    """
    data = message.encode() if isinstance(message, str) else message
    if not data:
        return _ConvolutionLayout(*[tuple(range(rank))] * 3)
    found: dict[int, list[int]] = {}
    for number, wire, payload in payloads(data):
        values = [payload] if wire == VARINT else list(bytes(payload))
        found.setdefault(number, []).extend(int(value) for value in values)
    single = {number: (found.get(number) or [0])[-1] for number in (1, 2, 4, 5, 7, 8)}
    places = [tuple(found.get(number, ())) for number in (3, 6, 9)]
    made = _ConvolutionLayout(
        (single[1], single[2], *places[0]), (single[5], single[4], *places[1]), (single[7], single[8], *places[2])
    )
    if any(sorted(axes) != list(range(rank)) for axes in made):
        raise RunError(f"dimension_numbers do not name each of {rank} axes once")
    return made


class _Slide(NamedTuple):
    """How a window slides; one entry for each axis of places."""

    strides: Sequence[int]
    padding: str
    explicit: Sequence[int]
    spread: Sequence[int]  # of the input
    dilations: Sequence[int]  # of the window


def _slide(count: int, strides: Sequence[int], padding: str, explicit: Sequence[int], lhs_dilation: Sequence[int],
           rhs_dilation: Sequence[int]) -> _Slide:  # fmt: skip
    given = [list(numbers) or [1] * count for numbers in (strides, lhs_dilation, rhs_dilation)]
    if any(len(numbers) != count or min(numbers, default=1) < 1 for numbers in given):
        raise RunError(f"strides and dilations must be {count} positive numbers each")
    if padding == "EXPLICIT" and (len(explicit) != 2 * count or min(explicit, default=0) < 0):
        raise RunError(f"explicit_padding must be {2 * count} numbers that are not negative")
    if padding not in ("SAME", "VALID", "EXPLICIT"):
        raise RunError(f"no padding is called '{padding}' (SAME, VALID, EXPLICIT)")
    return _Slide(given[0], padding, explicit, given[1], given[2])


def _spread(x: Array, zeros: Array, taps: Sequence[int], how: _Slide) -> Array:
    """Codes [batch, channels, places…] less those of zero, with gaps and padding, in windows: …, places of a window."""
    sizes = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], how.spread, strict=True)]
    reach = [(t - 1) * d + 1 for t, d in zip(taps, how.dilations, strict=True)]
    pads = [(0, 0)] * len(sizes)
    if how.padding == "EXPLICIT":
        pads = list(zip(how.explicit[::2], how.explicit[1::2], strict=True))
    elif how.padding == "SAME":
        totals = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(sizes, how.strides, reach, strict=True)]
        pads = [(total // 2, total - total // 2) for total in totals]
    whole = [n + before + after for n, (before, after) in zip(sizes, pads, strict=True)]
    last = [None if n >= r else 0 for n, r in zip(whole, reach, strict=True)]  # where no window fits, no result
    whole = [max(n, r) for n, r in zip(whole, reach, strict=True)]
    border = zeros.astype(np.int8).astype(np.int64) - zeros  # what a byte holds of the code of zero
    wide = np.empty(reserve((*x.shape[:2], *whole), np.float64), np.float64)
    wide[...] = border
    inside = [slice(before, before + n, d) for (before, _), n, d in zip(pads, sizes, how.spread, strict=True)]
    every = slice(None)
    places = (every, every, *inside)
    wide[places] = x - zeros
    views = np.lib.stride_tricks.sliding_window_view(wide, reach, axis=tuple(range(2, wide.ndim)))
    steps = [slice(None, end, s) for end, s in zip(last, how.strides, strict=True)]
    gaps = [slice(None, None, d) for d in how.dilations]
    taken = (every, every, *steps, *gaps)
    return np.asarray(views[taken])


def convolved(x: Array, zeros: Array, weights: Array, how: _Slide, groups: int, batches: int) -> Array:
    """int32 sums of products, as int64 [batch, outputs, places…].

    Args:
        x: codes [batch, channels, places…].
        zeros: the code of zero, for all or for each of the batch.
        weights: [outputs, channels of a group, places…], less the code of zero.
        how: how the window slides.
        groups: of channels, each with outputs of its own.
        batches: groups of the batch, each with outputs of its own.

    Raises:
        RunError: the numbers do not fit.
    """
    outputs, inner = weights.shape[:2]
    if groups < 1 or batches < 1 or (groups > 1 and batches > 1):
        raise RunError("feature_group_count and batch_group_count must be positive, and one of them 1")
    if x.shape[1] != inner * groups or outputs % groups or outputs % batches or x.shape[0] % batches:
        raise RunError(f"groups that do not fit: input {list(x.shape)} and filter {list(weights.shape)}")
    seen = _spread(x, zeros, weights.shape[2:], how)
    count, places = len(how.strides), seen.shape[2 : 2 + len(how.strides)]
    batch, many = x.shape[0] // batches, outputs // max(groups, batches)
    total = np.zeros(reserve((batch, outputs, *places), np.float64))
    for part in range(max(groups, batches)):
        rows = slice(part * batch, (part + 1) * batch) if batches > 1 else slice(None)
        channels = slice(part * inner, (part + 1) * inner) if groups > 1 else slice(None)
        mine = weights[part * many : (part + 1) * many].astype(np.float64)
        window = [1, *range(2, 2 + count)]
        found = np.tensordot(seen[rows, channels], mine, ([1, *range(2 + count, 2 + 2 * count)], window))
        total[:, part * many : (part + 1) * many] = np.moveaxis(found, -1, 1)
    return wrapped(np.rint(total))


def _turned(lhs: Array, rhs: Array, dimension_numbers: bytes | str) -> tuple[_ConvolutionLayout, Array, Array]:
    if lhs.ndim != rhs.ndim or lhs.ndim < 3:
        raise RunError(f"lhs and rhs must have the same rank, 3 or more: {list(lhs.shape)} and {list(rhs.shape)}")
    axes = layout(dimension_numbers, lhs.ndim)
    return axes, lhs.transpose(axes.input), rhs.transpose(axes.kernel)


def _along_outputs(scale: Scale, axes: tuple[int, ...], place: int) -> Scale:
    """A scale of a tensor turned round, with its one axis of many at ``place``."""
    across = [1] * len(axes)
    across[place] = -1
    return Scale(scale.scales.reshape(across), scale.zeros.reshape(across))


def _check_axis(axis: int, wanted: int, what: str) -> None:
    if axis not in (-1, wanted):
        raise RunError(f"{what}_quantization_axis must be -1 or {wanted}, not {axis}")


@kernel("UniformQuantizedConvolution")
def uniform_quantized_convolution(
    lhs: Array,
    rhs: Array,
    lhs_scales: Array,
    lhs_zero_points: Array,
    rhs_scales: Array,
    rhs_zero_points: Array,
    output_scales: Array,
    output_zero_points: Array,
    *,
    padding: str,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    Tout: DType = QINT32,
    window_strides: Sequence[int] = (),
    explicit_padding: Sequence[int] = (),
    lhs_dilation: Sequence[int] = (),
    rhs_dilation: Sequence[int] = (),
    batch_group_count: int = 1,
    feature_group_count: int = 1,
    dimension_numbers: bytes | str = "",
    lhs_quantization_axis: int = -1,
    rhs_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
) -> Array:
    """A convolution of codes over any number of axes."""
    axes, x, weights = _turned(lhs, rhs, dimension_numbers)
    how = _slide(lhs.ndim - 2, window_strides, padding, explicit_padding, lhs_dilation, rhs_dilation)
    _check_axis(rhs_quantization_axis, axes.kernel[0], "rhs")
    _check_axis(output_quantization_axis, axes.output[1], "output")
    first = scale_along(lhs.shape, lhs_scales, lhs_zero_points, lhs_quantization_axis)
    second = _along_outputs(scale_along(rhs.shape, rhs_scales, rhs_zero_points, rhs_quantization_axis), axes.kernel, 0)
    sums = convolved(x, first.zeros, weights - second.zeros, how, feature_group_count, batch_group_count)
    shape = tuple(sums.shape[axes.output.index(axis)] for axis in range(lhs.ndim))
    after = scale_along(shape, output_scales, output_zero_points, output_quantization_axis)
    after = _along_outputs(after, axes.output, 1)
    weighted = _along_outputs(second, axes.output, 1).scales
    factors = first.scales.astype(np.float64) * weighted / after.scales
    found = limited(
        rescaled(sums, factors) + after.zeros, output_quantization_min_val, output_quantization_max_val, Tout.numpy
    )
    return np.ascontiguousarray(found.transpose(np.argsort(axes.output)))


@kernel("UniformQuantizedConvolutionHybrid")
def uniform_quantized_convolution_hybrid(
    lhs: Array,
    rhs: Array,
    rhs_scales: Array,
    rhs_zero_points: Array,
    *,
    padding: str,
    window_strides: Sequence[int] = (),
    explicit_padding: Sequence[int] = (),
    lhs_dilation: Sequence[int] = (),
    rhs_dilation: Sequence[int] = (),
    batch_group_count: int = 1,
    feature_group_count: int = 1,
    dimension_numbers: bytes | str = "",
    rhs_quantization_axis: int = -1,
) -> Array:
    """A convolution of float32, each of the batch rounded to codes of a range found in it, by codes."""
    axes, x, weights = _turned(lhs, rhs, dimension_numbers)
    how = _slide(lhs.ndim - 2, window_strides, padding, explicit_padding, lhs_dilation, rhs_dilation)
    _check_axis(rhs_quantization_axis, axes.kernel[0], "rhs")
    second = _along_outputs(scale_along(rhs.shape, rhs_scales, rhs_zero_points, rhs_quantization_axis), axes.kernel, 0)
    codes, first = found_scale(x)
    sums = convolved(codes, first.zeros, weights - second.zeros, how, feature_group_count, batch_group_count)
    by = first.scales
    if batch_group_count > 1:  # each group of outputs has its own part of the batch
        many = sums.shape[1] // batch_group_count
        by = np.repeat(by.reshape(batch_group_count, sums.shape[0]).T, many, axis=1)
        by = by.reshape(sums.shape[:2] + (1,) * (sums.ndim - 2))
    found = sums.astype(F32) * by * _along_outputs(second, axes.output, 1).scales
    return np.ascontiguousarray(np.asarray(found, F32).transpose(np.argsort(axes.output)))
