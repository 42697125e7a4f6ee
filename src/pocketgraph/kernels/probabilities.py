"""Which numbers may be probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST_SHARE = 1.001  # rounding makes shares a little larger than 1


def are_shares(scores: np.ndarray[Any, Any]) -> bool:
    """Whether all scores are from 0 to 1; logits are not."""
    return not ((scores < 0) | (scores > LARGEST_SHARE)).any()


def are_probabilities(rows: np.ndarray[Any, Any]) -> bool:
    """Whether each row is not negative and sums up to 1; ``rows`` is [answers, classes]."""
    return bool(rows.min(initial=0) >= -1e-6 and np.abs(rows.sum(axis=1) - 1).max(initial=0) < 0.05)
