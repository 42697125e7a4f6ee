"""Soft suppression: an overlap with a better box lowers a box's score instead of dropping the box."""

from __future__ import annotations

import heapq

import numpy as np

from pocketgraph.kernels.arrays import Array

FLOAT = np.float32
FIRST = 64  # boxes whose overlaps are computed at once to begin with; twice as many each time that is too few


def softly_apart(boxes: Array, scores: Array, limit: int, sigma: float, least: float) -> tuple[list[int], list[float]]:
    """(indices, scores) of the boxes kept, best first; each overlap lowers a score by exp(-overlap^2 / (2 sigma)).

    The steps are those of TensorFlow's NonMaxSuppressionV5: the best waiting box is compared with the boxes kept since
    it was last looked at, the latest first; if its score falls it waits again, and at ``least`` or below it is gone.

    Args:
        boxes: float32 (n, 4), two corners each.
        scores: float32 (n,).
        limit: how many to keep at most.
        sigma: above 0.
        least: what a score must exceed.
    """
    candidates = (scores > least).nonzero()[0]
    order = candidates[(-scores[candidates]).argsort(kind="stable")]
    ranked = scores[order].tolist()
    weights = np.empty((0, 0), FLOAT)
    waiting: list[tuple[float, int, int, int]] = []  # (-score, index, place in the order, kept boxes it has met)
    kept: list[int] = []
    places: list[int] = []
    found: list[float] = []
    coming = 0
    names = order.tolist()
    while len(kept) < limit and (waiting or coming < len(names)):
        if coming < len(names) and (not waiting or (-ranked[coming], names[coming]) < waiting[0][:2]):
            negative, index, place, met = -ranked[coming], names[coming], coming, 0
            coming += 1
        else:
            negative, index, place, met = heapq.heappop(waiting)
        if place >= len(weights):
            some = order[: max(FIRST, 2 * (place + 1))]
            weights = _weights(boxes.take(some, 0), sigma)
        score = original = FLOAT(-negative)
        for weight in weights[place].take(places[met:][::-1]):
            score = score * weight
            if score <= least:
                break
        if score == original:
            kept.append(index)
            places.append(place)
            found.append(float(score))
        elif score > least:
            heapq.heappush(waiting, (-float(score), index, place, len(kept)))
    return kept, found


def _weights(boxes: Array, sigma: float) -> Array:
    """(n, n): by what each box's score is multiplied for its overlap with each other."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    sides = high - low
    area = sides[:, 0] * sides[:, 1]
    common = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    np.maximum(common, FLOAT(0), out=common)
    shared = common[:, :, 0] * common[:, :, 1]
    ratio = shared / (area + area[:, None] - shared)
    ratio[(area[:, None] <= 0) | (area <= 0)] = 0
    return np.asarray(np.exp(FLOAT(-0.5 / sigma) * ratio * ratio))
