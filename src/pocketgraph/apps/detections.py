"""What detectors find: boxes with scores, how much they overlap, and which of many overlapping ones stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array


@dataclass(frozen=True)
class Detection:
    """Something found in a frame.

    Attributes:
        box: top, left, bottom, right, as shares of the frame's height and width (0 to 1).
        score: from 0 to 1.
        label: its class; "" where the model has but one.
        identity: the same for the same thing over frames; None before tracking.
        points: landmarks as (x, y) shares of the frame.
    """

    box: tuple[float, float, float, float]
    score: float
    label: str = ""
    identity: int | None = None
    points: tuple[tuple[float, float], ...] = ()


def overlaps(first: Array, second: Array) -> Array:
    """Intersection over union of each box with each other one.

    Args:
        first: [n, 4] of top, left, bottom, right.
        second: [m, 4].

    Returns:
        float64 [n, m], from 0 to 1.
    """
    a, b = np.asarray(first, np.float64)[:, None], np.asarray(second, np.float64)[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    inside = np.prod(np.maximum(sides, 0), axis=-1)
    area = np.prod(np.maximum(a[..., 2:] - a[..., :2], 0), -1) + np.prod(np.maximum(b[..., 2:] - b[..., :2], 0), -1)
    union = area - inside
    found: Array = np.divide(inside, union, out=np.zeros_like(inside), where=union > 0)
    return found


def without_overlaps(found: Sequence[Detection], most: float = 0.5, count: int = 100) -> list[Detection]:
    """Non-maximum suppression: the best ones, none of which overlaps a better one of its class by over ``most``."""
    ranked = sorted(found, key=lambda entry: -entry.score)
    kept: list[Detection] = []
    for entry in ranked:
        if len(kept) == count:
            break
        rivals = [other.box for other in kept if other.label == entry.label]
        if not rivals or overlaps(np.array([entry.box]), np.array(rivals)).max() <= most:
            kept.append(entry)
    return kept


def clipped(entry: Detection) -> Detection:
    """With the box cut to the frame."""
    top, left, bottom, right = (min(max(float(side), 0.0), 1.0) for side in entry.box)
    return replace(entry, box=(top, left, bottom, right))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), float64, without overflow."""
    from pocketgraph.kernels.math import elementwise

    return elementwise.sigmoid(np.asarray(x, np.float64))
