"""Elements moved between space, batch and depth in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import from_channels_last, padded, spatial, taps, to_channels_last, windows_of_op


def space_to_batch(x: Array, blocks: Sequence[int], paddings: Array) -> Array:
    """Each of the first spatial axes padded and cut into blocks, whose elements go to separate entries of the batch."""
    from pocketgraph.kernels.array.padding import pad

    count = len(blocks)
    if any(b < 1 for b in blocks):
        raise ValueError(f"block sizes must be 1 or more, not {list(blocks)}")
    rest = x.ndim - 1 - count
    if rest < 0 or paddings.shape != (count, 2):
        raise ValueError(f"blocks {list(blocks)} and paddings {list(paddings.shape)} for a shape of {list(x.shape)}")
    every = np.zeros((x.ndim, 2), dtype=np.int64)
    every[1 : 1 + count] = paddings
    wide = pad(x, every)
    cut: list[int] = []
    for size, block in zip(wide.shape[1 : 1 + count], blocks, strict=True):
        if size % block:
            raise ValueError(f"a padded dimension of {size} is not divisible by block_size {block}")
        cut += [size // block, block]
    parts = wide.reshape(x.shape[0], *cut, *wide.shape[1 + count :])
    order = [*range(2, 2 + 2 * count, 2), 0, *range(1, 1 + 2 * count, 2), *range(1 + 2 * count, 1 + 2 * count + rest)]
    outer = [s // b for s, b in zip(wide.shape[1 : 1 + count], blocks, strict=True)]
    batch = x.shape[0] * int(np.prod(blocks, dtype=np.int64))
    result: Array = parts.transpose(order).reshape(batch, *outer, *wide.shape[1 + count :])
    return result


def batch_to_space(x: Array, blocks: Sequence[int], crops: Array) -> Array:
    """The inverse of space_to_batch, cropped."""
    count = len(blocks)
    volume = int(np.prod(blocks, dtype=np.int64))
    if volume < 1 or x.shape[0] % volume or x.ndim < 1 + count or crops.shape != (count, 2):
        raise ValueError(f"blocks {list(blocks)} and crops {list(crops.shape)} for a shape of {list(x.shape)}")
    batch = x.shape[0] // volume
    parts = x.reshape(*blocks, batch, *x.shape[1:])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += range(2 * count + 1, parts.ndim)
    sizes = [s * b for s, b in zip(x.shape[1 : 1 + count], blocks, strict=True)]
    whole = parts.transpose(order).reshape(batch, *sizes, *x.shape[1 + count :])
    index = [slice(None)]
    for size, (before, after) in zip(sizes, crops.tolist(), strict=True):
        if before < 0 or after < 0 or before + after > size:
            raise ValueError(f"crops {before}, {after} do not fit a dimension of {size}")
        index.append(slice(before, size - after))
    return np.ascontiguousarray(whole[tuple(index)])


kernel("SpaceToBatchND")(lambda input, block_shape, paddings: space_to_batch(input, ints(block_shape), paddings))
kernel("BatchToSpaceND")(lambda input, block_shape, crops: batch_to_space(input, ints(block_shape), crops))


@kernel("SpaceToBatch")
def space_to_batch_2d(input: Array, paddings: Array, *, block_size: int) -> Array:
    return space_to_batch(input, (block_size, block_size), paddings)


@kernel("BatchToSpace")
def batch_to_space_2d(input: Array, crops: Array, *, block_size: int) -> Array:
    return batch_to_space(input, (block_size, block_size), crops)


@kernel("SpaceToDepth")
def space_to_depth(input: Array, *, block_size: int, data_format: str = "NHWC") -> Array:
    """The elements of each block of rows and columns become channels, row by row."""
    x = to_channels_last(input, data_format)
    n, rows, columns, channels = x.shape
    if block_size < 2 or rows % block_size or columns % block_size:
        raise ValueError(f"blocks of {block_size} do not divide {rows} x {columns}")
    parts = x.reshape(n, rows // block_size, block_size, columns // block_size, block_size, channels)
    moved = parts.transpose(0, 1, 3, 2, 4, 5)
    whole = moved.reshape(n, rows // block_size, columns // block_size, channels * block_size**2)
    return from_channels_last(whole, data_format)


@kernel("DepthToSpace")
def depth_to_space(input: Array, *, block_size: int, data_format: str = "NHWC") -> Array:
    x = to_channels_last(input, data_format)
    n, rows, columns, channels = x.shape
    if block_size < 2 or channels % block_size**2:
        raise ValueError(f"{channels} channels do not make blocks of {block_size} x {block_size}")
    parts = x.reshape(n, rows, columns, block_size, block_size, channels // block_size**2)
    moved = parts.transpose(0, 1, 3, 2, 4, 5)
    whole = moved.reshape(n, rows * block_size, columns * block_size, channels // block_size**2)
    return from_channels_last(whole, data_format)


@kernel("ExtractImagePatches")
def extract_image_patches(
    images: Array, *, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> Array:
    """Each window's elements as channels: row, column, channel."""
    taken = spatial(ksizes, "NHWC", "ksizes")
    spans = windows_of_op(images.shape[1:3], taken, strides, padding, "NHWC", rates, dilations_are="rates")
    size = images.shape[-1] * spans[0].taps * spans[1].taps
    reserve((images.shape[0], spans[0].output, spans[1].output, size), images.dtype)
    wide = padded(images, spans)
    return np.concatenate([wide[where] for _, where in taps(spans)], axis=-1)


@kernel("ExtractVolumePatches")
def extract_volume_patches(input: Array, *, ksizes: Sequence[int], strides: Sequence[int], padding: str) -> Array:
    """Each window's elements as channels: plane, row, column, channel."""
    if input.ndim != 5:
        raise RunError(f"input must be 5-dimensional, not of shape {list(input.shape)}")
    spans = windows_of_op(input.shape[1:4], spatial(ksizes, "NDHWC", "ksizes"), strides, padding, "NDHWC")
    size = input.shape[-1] * math.prod(span.taps for span in spans)
    reserve((input.shape[0], *(span.output for span in spans), size), input.dtype)
    wide = padded(input, spans)
    return np.concatenate([wide[where] for _, where in taps(spans)], axis=-1)
