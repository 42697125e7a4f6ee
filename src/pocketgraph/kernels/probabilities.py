"""Which numbers may be probabilities, and how near to the truth they are."""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDING = 0.001  # that makes shares a little larger than 1


def are_shares(scores: np.ndarray[Any, Any], rounding: float = ROUNDING) -> bool:
    """Whether all scores are from 0 to 1, or larger by ``rounding`` at most; logits are not."""
    return not ((scores < 0) | (scores > 1 + rounding)).any()


def are_probabilities(rows: np.ndarray[Any, Any]) -> bool:
    """Whether each row is not negative and sums up to 1; ``rows`` is [answers, classes]."""
    return bool(rows.min(initial=0) >= -1e-6 and np.abs(rows.sum(axis=1) - 1).max(initial=0) < 0.05)


def squared_errors(scores: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The summed squared distances of scores from what is wanted, 0 or 1 each: as they are, and through a sigmoid
    (Brier, 1950). NaN is left out."""
    known = ~np.isnan(scores)
    rows, truth = scores[known].astype(np.float64), wanted[known]
    with np.errstate(over="ignore"):
        shares = 0.5 + 0.5 * np.tanh(rows / 2)
        return float(np.square(rows - truth).sum()), float(np.square(shares - truth).sum())
