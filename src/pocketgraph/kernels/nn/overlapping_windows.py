"""The gradient of a max pool whose windows overlap, as 3x3 ones with strides of 2.

A window is taken as one along its row and then one over rows, so that the first of the largest, row by row, is found. A
few images are taken at a time, which stay in the processor's cache. Columns that are a stride apart are laid side by
side, so that what all windows of a row have at one of their places lies in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.nn.adjacent_windows import are_images, first_equal
from pocketgraph.kernels.windows import Window

TOGETHER = 1 << 17
"""Elements of images that are taken at a time: 512 kB of float32, a third of what is made of them besides."""
MOST_TAPS = 8  # of a window along an axis; each is some passes over what all windows have there

Taken: TypeAlias = Callable[[Array, int], Array]
"""What all windows of an axis have at one of their places, as a view of images."""


def are_overlapping(x: Array, dy: Array, spans: Sequence[Window]) -> bool:
    """Whether ``spread_over_overlapping`` takes these: float32 in one piece, windows without gaps in or between them.

    Args:
        x: the images, (batch, rows, columns, channels).
        dy: the gradient by the largest of each window, (batch, windows…, channels).
        spans: the windows along rows and columns.
    """
    return are_images(x, dy) and all(w.dilation == 1 and w.stride <= w.taps <= MOST_TAPS for w in spans)


def spread_over_overlapping(x: Array, dy: Array, spans: Sequence[Window], result: Array) -> bool:
    """Puts at each pixel the sum of the gradients of the windows of which it is the first of the largest, row by row.

    Args:
        x, dy, spans: as ``are_overlapping`` takes them.
        result: of the shape of ``x``, with any content.

    Returns:
        False where a number is not finite, whose place counts; ``result`` is then to be computed otherwise.
    """
    down, across = spans
    height = max(x.shape[1] + down.before, (down.output - 1) * down.stride + down.taps)
    groups = -(-max(x.shape[2] + across.before, (across.output - 1) * across.stride + across.taps) // across.stride)
    wide = height, across.stride, groups
    together = min(len(x), max(1, TOGETHER // (math.prod(wide) * x.shape[3])))
    room = np.full((together, *wide, x.shape[3]), -np.inf, np.float32)
    for first in range(0, len(x), together):
        images = slice(first, first + together)
        some, slopes = x[images], dy[images]
        beside = room[: len(some)]
        _move(some, beside, spans, back=False)
        largest, in_columns = _first_largest(beside, across, _columns(across))
        best, in_rows = _first_largest(largest, down, _rows(down))
        if not np.isfinite(best).all() or not np.isfinite(slopes).all():  # the largest is NaN where any is
            return False
        by_rows = _spread(slopes, in_rows, largest.shape, down, _rows(down))
        by_columns = _spread(by_rows, in_columns, beside.shape, across, _columns(across))
        _move(result[images], by_columns, spans, back=True)
    return True


def _rows(span: Window) -> Taken:
    last = (span.output - 1) * span.stride + 1
    return lambda images, place: images[:, place : place + last : span.stride]


def _columns(span: Window) -> Taken:
    def taken(beside: Array, place: int) -> Array:
        first = place // span.stride
        return beside[:, :, place % span.stride, first : first + span.output]

    return taken


def _move(images: Array, beside: Array, spans: Sequence[Window], *, back: bool) -> None:
    """Lays columns of images that are a stride apart side by side, or takes them back from there.

    Args:
        images: (batch, rows, columns, channels).
        beside: (batch, rows, columns within a stride, strides, channels), with borders.
        spans: the windows along rows and columns.
        back: whether ``images`` is filled.
    """
    down, across = spans
    rows = beside[:, down.before : down.before + images.shape[1]]
    for place in range(across.stride):
        first = (place - across.before) % across.stride
        some, start = images[:, :, first :: across.stride], (first + across.before) // across.stride
        there = rows[:, :, place, start : start + some.shape[2]]
        if back:
            some[...] = there
        else:
            there[...] = some


def _first_largest(images: Array, span: Window, taken: Taken) -> tuple[Array, list[Array]]:
    """The largest of each window, and for each place whether it is the first of these."""
    views = [taken(images, place) for place in range(span.taps)]
    largest = views[0].copy()
    for view in views[1:]:
        np.maximum(largest, view, out=largest)
    return largest, first_equal(views, largest)


def _spread(slopes: Array, masks: Sequence[Array], shape: tuple[int, ...], span: Window, taken: Taken) -> Array:
    """The sums of what windows give to their elements."""
    made, given = np.zeros(shape, np.float32), np.empty(slopes.shape, np.float32)
    for place, mask in enumerate(masks):
        target = taken(made, place)
        if place < span.stride:  # no window before has these elements
            np.multiply(slopes, mask, out=target)
            continue
        np.multiply(slopes, mask, out=given)
        target += given
    return made
