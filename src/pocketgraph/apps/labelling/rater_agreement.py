"""How far raters agree beyond what chance brings: Cohen's and Fleiss' kappa; of boxes, how many have their like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pocketgraph.apps.detections import overlaps
from pocketgraph.apps.labelling.labels_file import AGREED, Box, Judgement, LabelsFile
from pocketgraph.graph.tensor import Array

ALIKE = 0.5
"""Intersection over union from which two boxes are of the same thing."""


@dataclass(frozen=True)
class RaterAgreement:
    """Of all raters of a file.

    Attributes:
        raters: who.
        pairs: of each two: their names, photos that both judged, Cohen's kappa; of boxes the share that has its like.
        fleiss: kappa of all; nan where it is not defined.
        shared: photos that all raters judged.
        disputed: photos that raters disagree on and nobody settled, in order.
    """

    raters: tuple[str, ...]
    pairs: tuple[tuple[str, str, int, float], ...]
    fleiss: float
    shared: int
    disputed: tuple[str, ...]


def cohen_kappa(table: Array) -> float:
    """Cohen's kappa of two raters ("A coefficient of agreement for nominal scales", 1960).

    >>> round(cohen_kappa(np.array([[20, 5], [10, 15]])), 3)
    0.4

    Args:
        table: [classes, classes], how often the one said the row and the other the column.

    Returns:
        1 for the same, 0 for what chance brings; nan where both always say the same one.
    """
    total = table.sum()
    if total == 0:
        return math.nan
    shares = table / total
    chance = float(shares.sum(axis=0) @ shares.sum(axis=1))
    return (float(np.trace(shares)) - chance) / (1 - chance) if chance < 1 else math.nan


def fleiss_kappa(counts: Array) -> float:
    """Fleiss' kappa ("Measuring nominal scale agreement among many raters", 1971); nan where all always say one.

    Args:
        counts: [photos, classes], how many raters gave a photo a class; as many for each photo.
    """
    if not len(counts) or counts[0].sum() < 2:
        return math.nan
    raters = counts[0].sum()
    alike = ((counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))).mean()
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return float((alike - chance) / (1 - chance)) if chance < 1 else math.nan


def agreement(labels: LabelsFile) -> RaterAgreement:
    """How far the raters of a file agree; photos that one of two skipped do not count for them."""
    names = labels.raters
    said = {name: {p: j for p, j in labels.of(name).items() if j.kind != "skip"} for name in names}
    pairs = []
    for one, other in combinations(names, 2):
        shared = [path for path in said[one] if path in said[other]]
        both = [(said[one][path], said[other][path]) for path in shared]
        pairs.append((one, other, len(both), _of_pair(both, labels)))
    shared_by_all = [path for path in said[names[0]] if all(path in said[name] for name in names)] if names else []
    fleiss = math.nan
    if not labels.has_boxes:
        counts = np.zeros((len(shared_by_all), len(labels.classes)))
        for row, path in enumerate(shared_by_all):
            for name in names:
                counts[row, labels.classes.index(said[name][path].label)] += 1
        fleiss = fleiss_kappa(counts)
    settled = labels.of(AGREED)
    paths = dict.fromkeys(path for name in names for path in said[name])
    disputed = [
        path
        for path in paths
        if path not in settled and not same([said[name][path] for name in names if path in said[name]])
    ]
    return RaterAgreement(tuple(names), tuple(pairs), fleiss, len(shared_by_all), tuple(disputed))


def same(judgements: Sequence[Judgement]) -> bool:
    """Whether judgements of one photo say the same."""
    first = judgements[0]
    return all(
        other.label == first.label and len(other.boxes) == len(first.boxes) == matched(first.boxes, other.boxes)
        for other in judgements[1:]
    )


def matched(ours: Sequence[Box], theirs: Sequence[Box]) -> int:
    """How many boxes have their like among others: of the same class, the largest overlaps first, each once."""
    shares = overlaps(_sides(ours), _sides(theirs))
    pairs = sorted(
        (-shares[i, j], i, j)
        for i, a in enumerate(ours)
        for j, b in enumerate(theirs)
        if a.label == b.label and shares[i, j] >= ALIKE
    )
    left, right = set[int](), set[int]()
    for _, i, j in pairs:
        if i not in left and j not in right:
            left.add(i)
            right.add(j)
    return len(left)


def _sides(boxes: Sequence[Box]) -> Array:
    """[n, 4] of top, left, bottom, right."""
    return np.array([(box.y, box.x, box.y + box.height, box.x + box.width) for box in boxes]).reshape(-1, 4)


def _of_pair(both: Sequence[tuple[Judgement, Judgement]], labels: LabelsFile) -> float:
    if labels.has_boxes:
        boxes = sum(len(a.boxes) + len(b.boxes) for a, b in both)
        return 2 * sum(matched(a.boxes, b.boxes) for a, b in both) / boxes if boxes else math.nan
    table = np.zeros((len(labels.classes),) * 2)
    for a, b in both:
        table[labels.classes.index(a.label), labels.classes.index(b.label)] += 1
    return cohen_kappa(table)
