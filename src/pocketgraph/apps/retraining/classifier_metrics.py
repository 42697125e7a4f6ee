"""How good a classifier is: what it takes for what, how sure it is and how often right, and whether more help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.apps.retraining.example_lists import Example
from pocketgraph.apps.retraining.softmax_head import fold_of, solved
from pocketgraph.graph.tensor import Array

SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Of the training examples, for the learning curve."""
FOLDS = 5
STILL_RISING = 0.01
"""A classifier that gained more than this by its second half of examples would gain from more."""


@dataclass(frozen=True)
class Mistake:
    """An example whose best class is not its own."""

    path: str
    label: str
    answer: str
    score: float


@dataclass(frozen=True)
class Certainty:
    """Examples that are answered with a like certainty.

    Attributes:
        mean: of their best scores.
        accuracy: the share that is right.
        count: of examples.
    """

    mean: float
    accuracy: float
    count: int


def certainties(scores: Array, classes: Array, bins: int = 10) -> tuple[Certainty, ...]:
    """Examples by how sure the classifier is of them, in bins of equal width; empty ones are left out.

    Args:
        scores: [n, classes], shares.
        classes: [n].
        bins: how many.
    """
    best, right = scores.max(axis=1), scores.argmax(axis=1) == classes
    which = np.minimum((best * bins).astype(int), bins - 1)
    return tuple(
        Certainty(float(best[inside].mean()), float(right[inside].mean()), int(inside.sum()))
        for inside in (which == number for number in range(bins))
        if inside.any()
    )


def calibration_error(bins: Sequence[Certainty]) -> float:
    """Expected calibration error: |mean certainty - accuracy| over bins of certainty, by their shares.

    Guo et al., "On Calibration of Modern Neural Networks" (2017).
    """
    total = sum(one.count for one in bins)
    return sum(one.count * abs(one.mean - one.accuracy) for one in bins) / max(total, 1)


def confusion_of(classes: Array, answers: Array, count: int) -> Array:
    """int64 [count, count]: rows are what examples are, columns what was answered."""
    found = np.zeros((count, count), np.int64)
    np.add.at(found, (classes, answers), 1)
    return found


def mistakes_of(
    examples: Sequence[Example], scores: Array, classes: Array, labels: Sequence[str]
) -> tuple[Mistake, ...]:
    """The examples that are answered wrong, the surest first."""
    answers = scores.argmax(axis=1)
    found = [
        Mistake(examples[i].path, labels[classes[i]], labels[answers[i]], float(scores[i].max()))
        for i in map(int, np.flatnonzero(answers != classes))
    ]
    return tuple(sorted(found, key=lambda one: -one.score))


def learning_curve(
    features: Array, classes: Array, count: int, strength: float, groups: Sequence[str], seed: int
) -> tuple[tuple[int, float], ...]:
    """(examples, accuracy on others) for growing shares of the examples: means over five foldings.

    Args:
        features, classes, count, strength: as in ``solved``.
        groups: examples of one group stay on one side.
        seed: of the cutting.
    """
    parts = fold_of(classes, FOLDS, seed, groups)
    order = np.random.default_rng(seed).permutation(len(classes))
    found = []
    for share in SHARES:
        sizes, right = [], []
        for part in range(FOLDS):
            inside, outside = order[parts[order] != part], parts == part
            some = _share_of(inside, classes, share)
            if not outside.any() or len(np.unique(classes[some])) < count:
                continue
            head, _ = solved(features[some], classes[some], count, strength)
            sizes.append(len(some))
            right.append(float((head.logits(features[outside]).argmax(axis=1) == classes[outside]).mean()))
        if sizes:
            found.append((round(float(np.mean(sizes))), float(np.mean(right))))
    return tuple(found)


def gain_of_last_half(curve: Sequence[tuple[int, float]]) -> float | None:
    """How much accuracy came with the second half of the examples; None where that is not known."""
    half = [right for size, right in curve if size * 2 <= curve[-1][0] + 1]
    return curve[-1][1] - half[-1] if half else None


def _share_of(rows: Array, classes: Array, share: float) -> Array:
    """The first so many of each class."""
    chosen = [
        mine[: max(1, round(len(mine) * share))] for mine in (rows[classes[rows] == c] for c in np.unique(classes))
    ]
    return np.concatenate(chosen)
