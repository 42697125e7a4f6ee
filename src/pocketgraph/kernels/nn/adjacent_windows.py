"""The gradient of a max pool whose windows lie side by side: each pixel is in one window only.

A few images are taken at a time, which stay in the processor's cache while each element of their windows is compared
with the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.windows import Window, blocks

TOGETHER = 1 << 17
"""Elements of images that are taken at a time: 512 kB of float32, as much as masks and results take besides."""
MOST_ELEMENTS = 64  # of a window; each is a pass over what its windows have there


def are_images(x: Array, dy: Array) -> bool:
    """Whether both hold something, and that float32, the first in four dimensions."""
    return x.ndim == 4 and x.dtype == dy.dtype == np.float32 and bool(x.size and dy.size)


def are_adjacent(x: Array, dy: Array, spans: Sequence[Window]) -> bool:
    """Whether ``spread_to_largest`` takes these: float32 in one piece, windows side by side from the first pixel.

    Args:
        x: the images, (batch, rows, columns, channels).
        dy: the gradient by the largest of each window, (batch, windows…, channels).
        spans: the windows along rows and columns.
    """
    if not are_images(x, dy):
        return False
    if not (x.flags.c_contiguous and dy.flags.c_contiguous) or math.prod(w.taps for w in spans) > MOST_ELEMENTS:
        return False
    return all(
        w.stride == w.taps and w.dilation == 1 and not w.before and w.output * w.taps <= size
        for w, size in zip(spans, x.shape[1:3], strict=True)
    )


def spread_to_largest(x: Array, dy: Array, spans: Sequence[Window], result: Array) -> bool:
    """Puts each gradient where the first of the largest of its window lies, row by row, and zeros elsewhere.

    Args:
        x, dy, spans: as ``are_adjacent`` takes them.
        result: of the shape of ``x``, with any content.

    Returns:
        False where a NaN, or a gradient that is not finite, makes the order of comparisons count; ``result`` is then
        to be computed otherwise.
    """
    below, beside = (w.output * w.taps for w in spans)
    if (below, beside) != x.shape[1:3]:
        result[:, below:] = 0
        result[:, :, beside:] = 0
    for images, rows in blocks(x.shape[0], spans[0].output, math.prod(x.shape[2:]) * spans[0].taps, TOGETHER):
        slopes = dy[images, rows]
        if not np.isfinite(slopes).all():
            return False
        first, last = (0, below) if rows.stop is None else (rows.start * spans[0].taps, rows.stop * spans[0].taps)
        part = images, slice(first, min(last, below)), slice(0, beside)
        elements = elements_of(x[part], spans)
        masks = _first_largest(elements)
        if masks is None:
            return False
        for mask, target in zip(masks, elements_of(result[part], spans), strict=True):
            np.multiply(slopes, mask, out=target)
    return True


def elements_of(some: Array, spans: Sequence[Window]) -> list[Array]:
    """Views of what the windows have at each of their elements, row by row: (images, windows…, channels).

    Args:
        some: images, (batch, rows, columns, channels), or some of their rows.
        spans: windows side by side from the first pixel; what they have no room for is in no view.
    """
    (down, across), (_, rows, columns, _) = (w.taps for w in spans), some.shape
    whole = some[:, : rows - rows % down, : columns - columns % across]
    return [whole[:, row::down, column::across] for row in range(down) for column in range(across)]


def _first_largest(elements: Sequence[Array]) -> list[Array] | None:
    """For each element of a window, where it is the first of the largest; None where one is NaN."""
    largest = elements[0] if len(elements) == 1 else np.maximum(elements[0], elements[1])
    for other in elements[2:]:
        np.maximum(largest, other, out=largest)
    return None if np.isnan(largest).any() else first_equal(elements, largest)


def first_equal(elements: Sequence[Array], largest: Array) -> list[Array]:
    """For each element of a window, where it is the first that equals the largest; the last one where no other does."""
    masks: list[Array] = []
    left = np.ones(largest.shape, bool)
    for other in elements[:-1]:
        mask = np.equal(other, largest)
        mask &= left
        left ^= mask
        masks.append(mask)
    return [*masks, left]
