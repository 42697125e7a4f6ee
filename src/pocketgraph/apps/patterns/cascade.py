"""A cascade: a small model looks at everything, a large one only at what the small one is not sure of."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np

from pocketgraph.errors import UsageError

Given = TypeVar("Given")
Answer = TypeVar("Answer")
MOST_RUNS = 10000
"""So many of the last runs are remembered."""


@dataclass
class _Latencies:
    """What the last runs took, in ms, and which of them went on to the large model."""

    small: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))
    large: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))
    total: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))
    further: deque[bool] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))

    @property
    def passed_on(self) -> float:
        """The share of runs that went on."""
        return sum(self.further) / len(self.further) if self.further else 0.0

    def percentiles(self, shares: tuple[int, ...] = (50, 90, 99)) -> dict[str, float]:
        """Of whole runs: ``{"p50": ms, …}``; empty before there was one."""
        return {f"p{share}": float(np.percentile(self.total, share)) for share in shares} if self.total else {}


class Cascade(Generic[Given, Answer]):
    """Two models as one.

    Args:
        small: its answer, and how sure it is of it, from 0 to 1.
        large: the answer where the small one is not sure.
        sure: from where on the small one's answer counts.
        wakes: instead of ``sure``: whether the small one's answer has the large one run; the form of a wake word.

    Raises:
        UsageError: ``sure`` is not from 0 to 1.
    """

    def __init__(
        self,
        small: Callable[[Given], tuple[Answer, float]],
        large: Callable[[Given], Answer],
        *,
        sure: float = 0.8,
        wakes: Callable[[Answer, float], bool] | None = None,
    ) -> None:
        if not 0 <= sure <= 1:
            raise UsageError(f"a cascade is sure from {sure:g} on, which is not from 0 to 1")
        self._small, self._large, self._sure, self._wakes = small, large, sure, wakes
        self.latencies = _Latencies()

    def __call__(self, given: Given) -> Answer:
        """The answer of one of the two."""
        begun = perf_counter()
        answer, certainty = self._small(given)
        between = perf_counter()
        self.latencies.small.append(1000 * (between - begun))
        further = certainty < self._sure if self._wakes is None else self._wakes(answer, certainty)
        self.latencies.further.append(further)
        if further:
            answer = self._large(given)
            self.latencies.large.append(1000 * (perf_counter() - between))
        self.latencies.total.append(1000 * (perf_counter() - begun))
        return answer


def wake_word(label: str, least: float = 0.7) -> Callable[[Any, float], bool]:
    """For ``wakes``: the small model has to hear this word with at least this score."""
    return lambda answer, certainty: answer == label and certainty >= least
