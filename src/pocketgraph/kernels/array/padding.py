"""Borders put round tensors: zeros, a value, or the mirrored inside."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel


def _pairs(input: Array, paddings: Array) -> list[tuple[int, int]]:
    """A (before, after) pair an axis.

    Raises:
        ValueError: not one pair an axis, or a negative one.
    """
    flat = ints(paddings)
    if paddings.shape != (input.ndim, 2):
        raise ValueError(f"paddings of shape {list(paddings.shape)} where {[input.ndim, 2]} is wanted")
    if any(p < 0 for p in flat):
        raise ValueError("Paddings must be non-negative")
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    reserve([n + b + a for n, (b, a) in zip(input.shape, pairs, strict=True)], input.dtype)
    return pairs


def _filled(input: Array, pairs: list[tuple[int, int]], value: Array) -> Array:
    result = np.empty([n + b + a for n, (b, a) in zip(input.shape, pairs, strict=True)], dtype=input.dtype)
    result[...] = value
    inside = [slice(b, b + n) for n, (b, _) in zip(input.shape, pairs, strict=True)]
    result[tuple(inside) or ...] = input  # with () the array itself would become one of the texts
    return result


@kernel("Pad")
def pad(input: Array, paddings: Array) -> Array:
    return _filled(input, _pairs(input, paddings), np.array(0 if input.dtype.kind != "O" else b"").astype(input.dtype))


kernel("PadV2")(lambda input, paddings, constant_values: _filled(input, _pairs(input, paddings), constant_values))


@kernel("XlaPad")
def xla_pad(
    input: Array, padding_value: Array, padding_low: Array, padding_high: Array, padding_interior: Array
) -> Array:
    """Some elements between those of an axis, and some before and after; fewer than none takes elements away.

    Raises:
        ValueError: not one amount an axis, fewer than none between elements, or fewer than none left.
    """
    amounts = [ints(each) for each in (padding_low, padding_high, padding_interior)]
    if any(len(each) != input.ndim for each in amounts) or any(n < 0 for n in amounts[2]):
        raise ValueError(f"paddings {amounts} of a tensor of rank {input.ndim}, whose last may not be negative")
    rows = list(zip(*amounts, strict=True))
    apart = [max(n + (n - 1) * between, 0) for n, (_, _, between) in zip(input.shape, rows, strict=True)]
    left = [n + low + high for n, (low, high, _) in zip(apart, rows, strict=True)]
    if min(left, default=0) < 0:
        raise ValueError(f"paddings {amounts} of {list(input.shape)} give sizes of {left}")
    around = [(max(low, 0), max(high, 0)) for low, high, _ in rows]
    sizes = [n + before + after for n, (before, after) in zip(apart, around, strict=True)]
    result = np.full(reserve(sizes, input.dtype), padding_value, input.dtype)
    places = zip(apart, around, rows, strict=True)
    result[tuple(slice(before, before + n, between + 1) for n, (before, _), (_, _, between) in places)] = input
    cuts = zip(sizes, rows, strict=True)
    return np.asarray(result[tuple(slice(max(-low, 0), max(n + min(high, 0), 0)) for n, (low, high, _) in cuts)])


@kernel("MirrorPad")
def mirror_pad(input: Array, paddings: Array, *, mode: str) -> Array:
    """REFLECT leaves the edge out of the mirror image, SYMMETRIC repeats it."""
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"mode must be REFLECT or SYMMETRIC, not '{mode}'")
    pairs = _pairs(input, paddings)
    edge = 1 if mode == "REFLECT" else 0
    for size, (before, after) in zip(input.shape, pairs, strict=True):
        if before > size - edge or after > size - edge:
            raise ValueError(f"paddings {before}, {after} are too large to mirror a dimension of {size} ({mode})")
    if not any(map(any, pairs)):
        return input
    result = np.empty([n + b + a for n, (b, a) in zip(input.shape, pairs, strict=True)], dtype=input.dtype)
    region = [slice(b, b + n) for n, (b, _) in zip(input.shape, pairs, strict=True)]  # what is filled
    result[tuple(region)] = input
    for axis in (axis for axis, pair in enumerate(pairs) if any(pair)):
        before, after = pairs[axis]
        end, region[axis] = region[axis].stop, slice(None)
        lines = np.moveaxis(result[tuple(region)], axis, 0)
        lines[:before] = lines[before + edge : 2 * before + edge][::-1]
        lines[end:] = lines[end - edge - after : end - edge][::-1]
    return result


@kernel("MirrorPadGrad")
def mirror_pad_grad(input: Array, paddings: Array, *, mode: str) -> Array:
    """The border folded back and added to what it mirrored."""
    edge = 1 if mode == "REFLECT" else 0
    result = input
    flat = ints(paddings)
    if paddings.shape != (input.ndim, 2) or min(flat, default=0) < 0:
        raise ValueError(f"Paddings must be two non-negative numbers an axis: {paddings.tolist()}")
    for axis, (before, after) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
        size = input.shape[axis] - before - after
        moved = np.moveaxis(result, axis, 0)
        inner = moved[before : before + size].copy()
        if before:
            inner[edge : edge + before] += moved[:before][::-1]
        if after:
            inner[size - edge - after : size - edge] += moved[before + size :][::-1]
        result = np.moveaxis(inner, 0, axis)
    return np.asarray(result, order="C")
