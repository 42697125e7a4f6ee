"""Labels that are likely wrong: confident learning on scores of examples by what was learned without them.

Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels" (2021). The scores are of
kernel ridge regression, whose answers without each example have a closed form: Rasmussen and Williams, "Gaussian
Processes for Machine Learning" (2006), equation 5.12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.retraining.softmax_head import fold_of
from pocketgraph.graph.tensor import Array

CROPS = (("whole", 1.0, 0.5, 0.5), ("middle", 0.75, 0.5, 0.5), ("inner", 0.5, 0.5, 0.5), ("above left", 0.7, 0, 0),
         ("above right", 0.7, 0, 1), ("below left", 0.7, 1, 0), ("below right", 0.7, 1, 1))  # fmt: skip
"""Parts of a photo: the share of its sides, and where from 0 to 1 the part lies down and across."""
RIDGE = 0.3
"""Variance of a label beside the kernel's 1: much, as what follows every label follows the wrong ones too."""
WHITENING, LEAST_VARIANCE = 0.2, 0.01
"""Power of an axis's variance that it is divided by; of the largest axis's, what is added to it."""
ALIKE, WIDER = 0.8, 0.5
"""Quantile of how well another class fits a class's examples, and the part of it that is no reason for doubt."""
CLEAR, LITTLE, ROUNDS = 0.5, 0.1, 2
"""Doubt from which on a label counts for others' by this much only, and how often that is decided anew."""
SURE = 0.62
"""Of a class's mean score, the least doubt that is told; benchmarks/label_errors.py shows what that finds."""
MOST, FEWEST = 2000, 20
"""Examples that judge each other; of a class, so many of them, or all."""


@dataclass(frozen=True)
class LabelError:
    """An example whose label is likely wrong.

    Attributes:
        place: of the example.
        label: the class that it likely is.
        doubt: by how much that class fits better than its own label, beyond what is usual between the two.
    """

    place: int
    label: int
    doubt: float


def of_views(model: PictureModel, pixels: Array) -> tuple[Array, Array]:
    """What a model makes of a photo whole, and on average of its parts, mirrored ones too.

    Args:
        model: gives the features.
        pixels: uint8 [height, width, 3].

    Returns:
        float32 [size]: features of the whole photo; of the parts.
    """
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    views = [pixels[top : top + side, left : left + side]]
    for _, share, down, across in CROPS:
        rows, columns = max(1, int(height * share)), max(1, int(width * share))
        top, left = int((height - rows) * down), int((width - columns) * across)
        views.append(pixels[top : top + rows, left : left + columns])
    made = [_row(model, picture) for view in views for picture in (view, view[:, ::-1])]
    return made[2], np.mean(made, axis=0)


def held_out_scores(features: Array, classes: Array, count: int) -> Array:
    """How well the classes fit each example by what was learned without it, float64 [n, count]; about 0 to 1.

    Ridge regression of the classes on the square roots of the features, with a Gaussian kernel as wide as examples
    are apart. Clear errors among the labels are found in rounds, and then hardly count for other examples. More than
    ``MOST`` examples are judged in parts, small classes being in each.

    Args:
        features: of views, [n, size].
        classes: [n] whole numbers.
        count: of the classes.
    """
    roots = np.sign(features) * np.sqrt(np.abs(features.astype(np.float64)))
    held = np.zeros((len(classes), count))
    number = -(-len(classes) // MOST)
    parts = fold_of(classes, number, 0)
    small = np.bincount(classes, minlength=count)[classes] < FEWEST * number
    if small.sum() > MOST:
        small[:] = False
    for part in range(number):
        rows = np.flatnonzero(small | (parts == part))
        held[rows] = _judged(_kernel(_whitened(roots[rows])), classes[rows], count)
    return held


def label_errors(held: Array, classes: Array) -> list[LabelError]:
    """The examples that another class fits better by much, the most doubtful first.

    As in confident learning, how much is enough is a class's own affair: its part of the mean score of the examples
    with that label.

    Args:
        held: scores of each example by what was learned without it, [n, classes].
        classes: [n], the labels.
    """
    count = held.shape[1]
    limits = np.array([held[classes == j, j].mean() if (classes == j).any() else np.inf for j in range(count)])
    best, found = held.argmax(axis=1), doubts(held, classes)
    rows = np.flatnonzero((best != classes) & (found >= SURE * limits[best]))
    order = np.lexsort((rows, -found[rows]))
    return [LabelError(int(rows[i]), int(best[rows[i]]), float(found[rows[i]])) for i in order]


def doubts(held: Array, classes: Array) -> Array:
    """By how much another class fits each example better than its label, beyond what is usual between the two, [n].

    Roses that look like tulips are common; roses that look like dandelions are rare, and more likely no roses.
    """
    better = held - held[np.arange(len(held)), classes][:, None]
    for label in np.unique(classes):
        rows = classes == label
        better[rows] -= WIDER * np.quantile(better[rows], ALIKE, axis=0)
    better[np.arange(len(held)), classes] = -np.inf
    found: Array = better.max(axis=1)
    return found


def _row(model: PictureModel, view: Array) -> Array:
    (made,) = model.of_pixels(np.ascontiguousarray(view))
    row, batch = np.asarray(made, np.float32), model.input.batch
    return (row[0] if batch > 1 and len(row) == batch else row).reshape(-1)


def _judged(kernel: Array, classes: Array, count: int) -> Array:
    """The scores of each example without it, the labels that are clearly wrong counting little."""
    weights = np.ones(len(kernel))
    for _ in range(ROUNDS):
        found = doubts(_left_out(kernel, classes, count, weights), classes)
        weights = np.where(found > CLEAR, LITTLE, 1.0)
    return _left_out(kernel, classes, count, weights)


def _left_out(kernel: Array, classes: Array, count: int, weights: Array) -> Array:
    """What regression on all examples but one says of that one, for each, [n, count]."""
    wanted = np.eye(count)[classes]
    inverse = np.linalg.inv(kernel + np.diag(RIDGE / weights))
    found: Array = wanted - inverse @ (wanted - wanted.mean(axis=0)) / np.diag(inverse)[:, None]
    return found


def _whitened(table: Array) -> Array:
    """Principal axes, those of much variance made shorter; so that no few of them decide alone."""
    turned, lengths, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    variances = lengths**2
    least = LEAST_VARIANCE * variances.max(initial=0.0) + np.finfo(np.float64).tiny
    found: Array = turned * lengths / (variances + least) ** WHITENING
    return found


def _kernel(table: Array) -> Array:
    """exp(-squared distance / its mean), [n, n]."""
    squares = (table**2).sum(axis=1)
    apart = np.maximum(squares[:, None] + squares - 2 * table @ table.T, 0)
    found: Array = np.exp(-apart / max(float(apart.mean()), 1e-12))
    return found
