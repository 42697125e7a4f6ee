"""Choices by chance, as rules and programs make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Choices:
    """What chooses by ``rng``, its random generator."""

    rng: np.random.Generator

    def chance(self, odds: float = 0.5) -> bool:
        return bool(self.rng.random() < odds)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(0, len(choices)))]

    def int(self, low: int, high: int) -> int:
        """A number of low…high, both possible."""
        return int(self.rng.integers(low, high + 1))
