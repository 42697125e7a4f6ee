"""Which numbers may be probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np


def are_probabilities(rows: np.ndarray[Any, Any]) -> bool:
    """Whether each row is not negative and sums up to 1; ``rows`` is [answers, classes]."""
    return bool(rows.min(initial=0) >= -1e-6 and np.abs(rows.sum(axis=1) - 1).max(initial=0) < 0.05)
