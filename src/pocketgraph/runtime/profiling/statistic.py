"""A running statistic of numbers: nothing is kept but the sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Number = TypeVar("Number", int, float)
NONE: Any = 0


@dataclass
class Statistic(Generic[Number]):
    """What is known of the numbers seen so far; integers stay integers, so that their sums are exact.

    Attributes:
        count: how many.
        first, newest: the first and the last of them.
        minimum, maximum: the smallest and the largest.
        total, squares: the sums of them and of their squares.
    """

    count: int = 0
    first: Number = NONE
    newest: Number = NONE
    minimum: Number = NONE
    maximum: Number = NONE
    total: Number = NONE
    squares: Number = NONE

    def update(self, value: Number) -> None:
        """Takes in one number."""
        if self.count == 0:
            self.first = self.minimum = self.maximum = value
        self.newest = value
        self.minimum = min(self.minimum, value)
        self.maximum = max(self.maximum, value)
        self.count += 1
        self.total += value
        self.squares += value * value

    @property
    def average(self) -> float:
        """The mean; 0 before the first number."""
        return self.total / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """The population variance, never negative; 0 before the first number."""
        return max(0.0, self.squares / self.count - self.average * self.average) if self.count else 0.0
