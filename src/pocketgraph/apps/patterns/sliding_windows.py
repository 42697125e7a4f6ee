"""A classifier slid over a larger picture, at several scales, many windows at once; and boxes proposed for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.apps.detections import Detection, without_overlaps
from pocketgraph.datasets.class_labels import class_name
from pocketgraph.datasets.image_loading import normalise, resize_bilinear
from pocketgraph.errors import UsageError
from pocketgraph.graph.tensor import Array

Scores = Callable[[Array], Array]
"""A batch of pictures [n, height, width, 3] to scores [n, classes]."""
LEAST_SIDE = 4  # pixels


@dataclass(frozen=True)
class PictureWindow:
    """A part of a picture: top, left, bottom, right in pixels."""

    top: int
    left: int
    bottom: int
    right: int

    def share(self, height: int, width: int) -> tuple[float, float, float, float]:
        """As shares of a picture of this size."""
        return self.top / height, self.left / width, self.bottom / height, self.right / width


def windows(
    height: int, width: int, side: int, *, stride: float = 0.5, scales: Sequence[float] = (1.0,)
) -> list[PictureWindow]:
    """Square windows that cover a picture; the last of a row and column end at the picture's edge.

    Args:
        height, width: of the picture, in pixels.
        side: of a window at scale 1.
        stride: from one window to the next, as a share of its side.
        scales: windows of ``side`` times each of these; those that do not fit are left out.

    Raises:
        UsageError: a size or stride is not over 0.
    """
    if side < LEAST_SIDE or not 0 < stride <= 4 or any(scale <= 0 for scale in scales):
        raise UsageError(f"windows of {side} pixels with a stride of {stride:g} at {list(scales)} cannot be")
    found: list[PictureWindow] = []
    for scale in scales:
        size = round(side * scale)
        if size < LEAST_SIDE or size > min(height, width):
            continue
        step = max(1, round(size * stride))
        rows = sorted({*range(0, height - size + 1, step), height - size})
        columns = sorted({*range(0, width - size + 1, step), width - size})
        found.extend(PictureWindow(y, x, y + size, x + size) for y in rows for x in columns)
    return found


def proposals(picture: Array, count: int = 50, *, cells: int = 16) -> list[PictureWindow]:
    """Windows in which something may be: where edges are dense, and denser than around them.

    The difference of the mean gradient inside a window and in the ring around it, over integral images, as in "edge
    boxes" (Zitnick, Dollár) in its simplest form. Overlapping ones are left out.

    Args:
        picture: uint8 [height, width, 3].
        count: how many at most, the best first.
        cells: of the shorter side; windows begin and end at their borders.
    """
    gray = picture.astype(np.float64).mean(axis=2)
    slope = np.abs(np.gradient(gray, axis=0)) + np.abs(np.gradient(gray, axis=1))
    total = np.pad(slope.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    height, width = gray.shape
    step = max(1, min(height, width) // cells)

    def mean(top: Array, left: Array, bottom: Array, right: Array) -> Array:
        inside = total[bottom, right] - total[top, right] - total[bottom, left] + total[top, left]
        found: Array = inside / np.maximum((bottom - top) * (right - left), 1)
        return found

    scored: list[Detection] = []
    for rows in (2, 3, 4, 6, 8):
        for columns in (2, 3, 4, 6, 8):
            size_y, size_x = rows * step, columns * step
            if size_y > height or size_x > width or not 0.4 <= size_y / size_x <= 2.5:
                continue
            top, left = np.meshgrid(
                np.arange(0, height - size_y + 1, step), np.arange(0, width - size_x + 1, step), indexing="ij"
            )
            bottom, right = top + size_y, left + size_x
            margin_y, margin_x = size_y // 4, size_x // 4
            outer = (
                np.maximum(top - margin_y, 0), np.maximum(left - margin_x, 0),
                np.minimum(bottom + margin_y, height), np.minimum(right + margin_x, width),
            )  # fmt: skip
            inside = mean(top, left, bottom, right)
            around = mean(*outer)
            contrast = (inside - around) * np.sqrt(rows * columns)
            for y, x in np.argwhere(contrast > 0):
                box = (top[y, x] / height, left[y, x] / width, bottom[y, x] / height, right[y, x] / width)
                scored.append(Detection(tuple(map(float, box)), float(contrast[y, x])))  # type: ignore[arg-type]
    best = without_overlaps(scored, 0.5, count)
    return [
        PictureWindow(*(round(v * s) for v, s in zip(entry.box, (height, width, height, width), strict=True)))
        for entry in best
    ]


def classified(
    picture: Array,
    places: Sequence[PictureWindow],
    scores: Scores,
    size: tuple[int, int],
    *,
    mean: float = 0.0,
    std: float = 255.0,
    batch: int = 16,
    labels: Sequence[str] = (),
    least: float = 0.5,
    overlap: float = 0.3,
    background: int | None = None,
) -> list[Detection]:
    """A detector made of a classifier: each window is scored, and of overlapping ones the best stays.

    Args:
        picture: uint8 [height, width, 3].
        places: windows or proposals.
        scores: the classifier.
        size: height and width of the pictures that it takes.
        mean, std: pixels are fed as ``(pixel - mean) / std``.
        batch: windows at once.
        labels: one a class.
        least: lower scores are nothing.
        overlap: boxes of one class that overlap more are one.
        background: a class that stands for nothing.
    """
    height, width = picture.shape[:2]
    found = []
    for start in range(0, len(places), batch):
        some = places[start : start + batch]
        feed = np.stack([
            normalise(resize_bilinear(picture[w.top : w.bottom, w.left : w.right], *size), mean, std) for w in some
        ])  # fmt: skip
        result = np.asarray(scores(feed))
        for place, row in zip(some, result.reshape(len(some), -1), strict=True):
            best = int(row.argmax())
            if row[best] >= least and best != background:
                found.append(Detection(place.share(height, width), float(row[best]), class_name(labels, best)))
    return without_overlaps(found, overlap)
