"""How often answers of independent tags are right, several of which may be true of a sample."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.probabilities import are_probabilities, are_shares, squared_errors

THRESHOLDS = (0.5, 0.0)
"""From which a tag is given: of shares, and of logits."""


def are_tags(wanted: Array, answer: Array) -> bool:
    """Whether what data want of answers are tags, 0 or 1 each, and not one of them for each sample, which is a class.

    Args:
        wanted: float64 [samples, tags].
        answer: an answer of the model, a row; values count only by their type.
    """
    is_row = answer.dtype.kind == "f" and answer.size == max(answer.shape, default=0) > 1
    return is_row and bool(np.isin(wanted, (0, 1)).all()) and not are_probabilities(wanted)


@dataclass
class TagAccuracy:
    """How often tags are right, over samples taken in one by one.

    A tag is given from a share of 0.5, or a logit of 0: where answers leave the range of shares, whichever is nearer
    to the tags.

    Attributes:
        count, width: how many samples, and how many tags.
        are_shares: whether all scores are from 0 to 1.
        sums: of each of THRESHOLDS: right tags, samples with all tags right, tags that are given rightly, and those
            that are given or wanted, int64 [2, 4]; what is both counts twice.
        errors: the ``squared_errors`` of both.
    """

    count: int = 0
    width: int = 0
    are_shares: bool = True
    sums: Array = field(default_factory=lambda: np.zeros((len(THRESHOLDS), 4), np.int64))
    errors: Array = field(default_factory=lambda: np.zeros(len(THRESHOLDS)))

    def add(self, scores: Array, wanted: Array) -> None:
        """Takes in one sample's scores, and which of the tags are true of it, 0 or 1 each. NaN gives no tag."""
        row, truth = scores.reshape(-1), wanted.reshape(-1) == 1
        self.count, self.width = self.count + 1, row.size
        self.are_shares = self.are_shares and are_shares(row, rounding=0)
        self.errors += squared_errors(row, truth)
        for at, threshold in enumerate(THRESHOLDS):
            given = row > threshold
            hits = (given == truth).sum(), (given == truth).all(), (given & truth).sum(), given.sum() + truth.sum()
            self.sums[at] += np.array(hits, np.int64)

    @property
    def _counts(self) -> Array:
        """The sums of the threshold that scores have."""
        shares, logits = self.sums
        found: Array = shares if self.are_shares or self.errors[0] < self.errors[1] else logits
        return found

    @property
    def right(self) -> float:
        """The share of all samples' tags that are right, given or not."""
        return float(self._counts[0]) / max(self.count * self.width, 1)

    @property
    def all_right(self) -> float:
        """The share of samples of which each tag is right."""
        return float(self._counts[1]) / max(self.count, 1)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of all tags together (micro-averaged F1); 1 where none is wanted,
        and none given."""
        return 2 * float(self._counts[2]) / float(self._counts[3]) if self._counts[3] else 1.0

    def words(self, count: str) -> str:
        """The figures in words; ``count`` says of how many samples."""
        return f"F1 of the tags {self.f1:.1%} on {count}, {self.right:.1%} of the tags are right"
