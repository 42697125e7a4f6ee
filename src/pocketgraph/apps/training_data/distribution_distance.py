"""How far two sets of photos are apart, by their vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pocketgraph.apps.retraining.softmax_head import cross_validated
from pocketgraph.graph.tensor import Array

STRENGTHS = (0.01, 0.1)
FEWEST = 10


@dataclass(frozen=True)
class Distance:
    """How far two sets of vectors are apart.

    Attributes:
        auc: how often a classifier that is to tell the sets apart ranks a vector of the second above one of the first,
            on vectors it was not solved on: 0.5 when it cannot, 1 when it always can.
        frechet: between normal distributions with independent numbers, over the first set's total variance.
    """

    auc: float
    frechet: float


def distance(first: Array, second: Array) -> Distance:
    """Compares two sets.

    A two-sample classifier test (Lopez-Paz and Oquab, 2017), and the Fréchet distance (Heusel et al., 2017) with
    diagonal covariances, for which few photos are enough.

    Args:
        first, second: [n, size] and [m, size], ten vectors at least each.
    """
    both = np.concatenate([first, second]).astype(np.float64)
    side = np.repeat([0, 1], [len(first), len(second)])
    weights = len(side) / (2 * np.bincount(side))
    _, held = cross_validated(both, side, 2, strengths=STRENGTHS, class_weights=weights)
    apart = (first.mean(axis=0, dtype=np.float64) - second.mean(axis=0, dtype=np.float64)) ** 2
    spreads = first.std(axis=0, dtype=np.float64), second.std(axis=0, dtype=np.float64)
    total = max(float((spreads[0] ** 2).sum()), 1e-12)
    frechet = float((apart + (spreads[0] - spreads[1]) ** 2).sum()) / total
    return Distance(area_under_curve(held[:, 1], side == 1), frechet)


def area_under_curve(scores: Array, positive: Array) -> float:
    """The share of pairs, of a positive and another, that the scores put in order; ties are half (Mann and Whitney)."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones = int(positive.sum())
    others = len(scores) - ones
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * others))
