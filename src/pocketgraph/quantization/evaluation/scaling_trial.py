"""Which scaling of pictures a model was trained with, by how many of its answers are right with each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pocketgraph.errors import option
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy

SCALINGS = ((0.0, 255.0), (127.5, 127.5), (0.0, 1.0))
"""Mean and deviation of pixels that networks are mostly trained with, the usual ones first."""
MOST_TRIED = 60  # samples for each of these


@dataclass(frozen=True)
class BetterScaling:
    """A scaling with which more answers are right than with the usual one, by more than chance.

    Attributes:
        mean, std: pixels from 0 to 255 are fed as ``(pixel - mean) / std``.
        right: how many answers are right so.
        usual: how many are with the usual one.
    """

    mean: float
    std: float
    right: ClassAccuracy
    usual: ClassAccuracy

    def words(self) -> str:
        """The options that say it, and what speaks for it."""
        return (
            f"{option('input_mean')}={self.mean:g} {option('input_std')}={self.std:g}: {self.right.top1:.0%} of "
            f"{self.usual.count} answers are right so, and {self.usual.top1:.0%} with 0 and 255"
        )


def better_scaling(judged: Callable[[float, float], ClassAccuracy | None]) -> BetterScaling | None:
    """The scaling with which most answers are right, where that is not the usual one; None where nothing tells.

    Args:
        judged: gives for a mean and a deviation how many answers are right; None where nobody knows what is right.
    """
    found: dict[tuple[float, float], ClassAccuracy] = {}
    for scaling in SCALINGS:
        right = judged(*scaling)
        if right is None:
            return None
        found[scaling] = right
    usual, best = found[SCALINGS[0]], max(found, key=lambda scaling: found[scaling].first)
    if found[best].top1_interval[0] <= usual.top1:
        return None
    return BetterScaling(*best, found[best], usual)
