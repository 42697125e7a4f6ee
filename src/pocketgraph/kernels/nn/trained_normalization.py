"""Batch norms that are trained, with a rectifier or without, and their gradients, in blocks that stay in the cache.

Each block is read once for its sums, which are float32 over a block and float64 over all, and once for what becomes of
it: a multiple of the images and a number, as exact as if the images were rounded once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.nn.rectified_convolution import LIMITS, rectify
from pocketgraph.kernels.recycled_arrays import aligned

BLOCK = 1 << 15
"""Elements of a block, about: 128 kB of float32, of which the second-level cache holds eight."""

ROW = 512
"""Elements of a row at most, which are added up: whole pixels, so that rows are long."""


class _Blocks:
    """Blocks of whole pixels of images [batch, rows, columns, channels], one after the other in memory."""

    def __init__(self, images: Array) -> None:
        self.channels, self.size = images.shape[-1], images.size
        pixels = self.size // self.channels
        together = next(count for count in range(max(1, ROW // self.channels), 0, -1) if pixels % count == 0)
        self.row = together * self.channels
        self.step = max(1, min(self.size, BLOCK) // self.row) * self.row
        self._ones = np.ones(self.step // self.row, np.float32)

    def __iter__(self) -> Iterator[slice]:
        return (slice(start, min(start + self.step, self.size)) for start in range(0, self.size, self.step))

    def back(self) -> Iterator[slice]:
        """The last block, which the cache still has, first."""
        yield from reversed(list(self))

    def repeated(self, values: Array | int) -> Array:
        """One value a channel, for each pixel of a block."""
        found = aligned((self.step,), np.float32)
        rows = found.reshape(-1, self.row)
        rows[0].reshape(-1, self.channels)[...] = values
        rows[1:] = rows[0]
        return found

    def add(self, block: Array, sums: Array) -> None:
        """Adds a block to ``sums``, float64, one for each element of a row."""
        rows = block.reshape(-1, self.row)
        sums += self._ones[: len(rows)] @ rows  # in half of the time of a sum

    def by_channel(self, sums: Array) -> Array:
        """Such sums, channel by channel."""
        return np.asarray(sums.reshape(-1, self.channels).sum(axis=0))


def normalized(
    x: Array, scale: Array, offset: Array, epsilon: float, result: Array, rectifier: str = ""
) -> tuple[Array, Array]:
    """Puts ``(x - mean) * scale / sqrt(variance + epsilon) + offset``, rectified, into ``result``.

    Deviations are from the first block's mean, and their squares less that of all blocks' mean are the variance.

    Args:
        x: the images, float32 [batch, rows, columns, channels], in one piece.
        scale, offset: float32 [channels].
        epsilon: is added to the variance.
        result: float32, as large as ``x``, in one piece.
        rectifier: Relu or Relu6; by default none.

    Returns:
        The batch's mean and variance (that of the sample), float64 [channels].
    """
    blocks, source, made = _Blocks(x), x.reshape(-1), result.reshape(-1)
    count = x.size // blocks.channels
    away = aligned((blocks.step,), np.float32)
    first, total, squares = np.zeros((3, blocks.row))
    blocks.add(source[: blocks.step], first)
    first = (blocks.by_channel(first) / (blocks.step // blocks.channels)).astype(np.float32)
    first[~np.isfinite(first)] = 0
    middle = blocks.repeated(first)
    for place in blocks:
        block = source[place]
        deviations = np.subtract(block, middle[: block.size], out=away[: block.size])
        blocks.add(deviations, total)
        deviations *= deviations
        blocks.add(deviations, squares)
    moved = blocks.by_channel(total) / count
    mean, variance = first + moved, np.maximum(blocks.by_channel(squares) / count - moved * moved, 0)
    gain = scale / np.sqrt(variance + epsilon)
    gains, shifts, zeros = map(blocks.repeated, (gain, offset - mean * gain, 0))
    for place in blocks.back():
        block = np.multiply(source[place], gains[: made[place].size], out=made[place])
        block += shifts[: block.size]
        if rectifier:
            rectify(block, rectifier, block, zeros[: block.size])
    return mean, variance


def normalization_gradients(
    slopes: Array,
    rectified: Array | None,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    epsilon: float,
    by_images: Array,
    rectifier: str = "",
) -> tuple[Array, Array]:
    """The gradients of ``normalized``; with d the slopes, c the image less its mean, r = 1 / sqrt(variance + epsilon),
    and means over the batch, that by the images is ``scale r (d - mean(d) - r² c mean(d c))``.

    Args:
        slopes: the gradient by its result.
        rectified: that result; None where nothing was rectified.
        x, scale, epsilon, rectifier: as it has them.
        mean, variance: what it gave, float32 [channels].
        by_images: is filled with the gradient by ``x``.

    Returns:
        The gradients (by the scale, by the offset), float32 [channels].
    """
    blocks, source, given, made = _Blocks(x), x.reshape(-1), slopes.reshape(-1), by_images.reshape(-1)
    outcome, limit = None if rectified is None else rectified.reshape(-1), np.float32(LIMITS.get(rectifier, math.inf))
    away, mask = aligned((blocks.step,), np.float32), aligned((blocks.step,), bool)
    middle = blocks.repeated(mean)
    by_offset, products = np.zeros((2, blocks.row))
    for place in blocks:
        block = source[place]
        passed = given[place]
        if outcome is not None:
            passing = np.greater(outcome[place], 0, out=mask[: block.size])
            if math.isfinite(limit):
                passing &= np.less(outcome[place], limit)
            passed, slope = made[place], passed
            passed[...] = passing
            passed *= slope
        centred = np.subtract(block, middle[: block.size], out=away[: block.size])
        blocks.add(passed, by_offset)
        centred *= passed
        blocks.add(centred, products)
    by_offset, products = blocks.by_channel(by_offset), blocks.by_channel(products)
    inverse = 1 / np.sqrt(variance.astype(np.float64) + epsilon)
    gain, count = scale * inverse, x.size // blocks.channels
    curve = -gain * inverse * inverse * products / count
    gains, curves, shifts = map(blocks.repeated, (gain, curve, -gain * by_offset / count - curve * mean))
    for place in blocks.back():
        block = made[place]
        np.multiply(given[place] if outcome is None else block, gains[: block.size], out=block)
        curved = np.multiply(source[place], curves[: block.size], out=away[: block.size])
        curved += shifts[: block.size]
        block += curved
    return (products * inverse).astype(np.float32), by_offset.astype(np.float32)
