"""How the values of a weight tensor are distributed, in a few bars."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Tensor

BARS = 24
MOST = 1 << 16  # values looked at, evenly chosen
FEWEST = 16  # values; fewer need no histogram


class Histogram(NamedTuple):
    """How many of the values looked at lie in each of BARS equal bins.

    Attributes:
        bars: the counts.
        low, high: where the bins begin and end: the smallest and the largest value.
        mean, deviation: of the values.
        zeros: the share of them that is exactly 0.
    """

    bars: tuple[int, ...]
    low: float
    high: float
    mean: float
    deviation: float
    zeros: float


def histogram_of(value: Any) -> Histogram | None:
    """The distribution of a tensor's numbers; None for anything else, for few, and for none that is finite."""
    if not isinstance(value, Tensor) or value.size < FEWEST or value.dtype.base.name in ("string", "bool"):
        return None
    try:
        flat = value.numpy().reshape(-1)
    except PocketgraphError:
        return None  # damaged; other parts of the page are still worth a look
    some = flat[:: max(1, len(flat) // MOST)]
    if some.dtype.kind == "c":
        return None
    numbers = some.astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) < FEWEST:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    if not np.isfinite(high - low):
        return None
    bars, _ = np.histogram(numbers, BARS, (low, high) if low < high else (low - 1, low + 1))
    return Histogram(
        tuple(bars.tolist()), low, high, float(numbers.mean()), float(numbers.std()), float((numbers == 0).mean())
    )
