"""Labels that are likely wrong: confident learning on scores of examples by heads and neighbours without them.

Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels" (2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.retraining.softmax_head import cross_validated

Array = np.ndarray[Any, Any]
NEIGHBOURS = 20
STRENGTHS = (0.01,)
"""A strong penalty: a head that follows every label follows the wrong ones too."""
SEEDS = (0, 1)
CROPS = (("whole", 1.0, 0.5, 0.5), ("middle", 0.75, 0.5, 0.5), ("inner", 0.5, 0.5, 0.5), ("above left", 0.7, 0, 0),
         ("above right", 0.7, 0, 1), ("below left", 0.7, 1, 0), ("below right", 0.7, 1, 1))  # fmt: skip
"""Parts of a photo: the share of its sides, and where from 0 to 1 the part lies down and across."""
LEAST_SCORE = 1e-4
SURE = 0.65
"""Of a class's mean score, by which it must fit better; benchmarks/label_errors.py shows what that finds."""


@dataclass(frozen=True)
class LabelError:
    """An example whose label is likely wrong.

    Attributes:
        place: of the example.
        label: the class that it likely is.
        doubt: by how much that class's score is above its own label's; 1 at most.
    """

    place: int
    label: int
    doubt: float


def of_views(model: PictureModel, pixels: Array) -> tuple[Array, Array, Array]:
    """What a model makes of a photo whole, and on average of its parts, mirrored ones too.

    Args:
        model: gives the features, and its own classes' scores behind them if it has some.
        pixels: uint8 [height, width, 3].

    Returns:
        float32: features of the whole photo [size]; of the parts [size]; logarithms of scores [classes], or [0].
    """
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    views = [pixels[top : top + side, left : left + side]]
    for _, share, down, across in CROPS:
        rows, columns = max(1, int(height * share)), max(1, int(width * share))
        top, left = int((height - rows) * down), int((width - columns) * across)
        views.append(pixels[top : top + rows, left : left + columns])
    made = []
    for view in views:
        made += [_row(model, view), _row(model, view[:, ::-1])]
    whole = made[2][0]
    features = np.mean([features for features, _ in made], axis=0)
    scores = np.mean([scores for _, scores in made], axis=0)
    usable = scores.size and np.isfinite(scores).all() and scores.min() >= 0
    return whole, features, np.log(scores + LEAST_SCORE) if usable else scores[:0]


def held_out_scores(features: Array, scores: Array, classes: Array, count: int) -> Array:
    """For each example the shares of the classes by what was learned without it, float64 [n, count].

    Two thirds are votes of the nearest neighbours in the square roots of the features, one third is a cross-validated
    softmax head on these and the base's own scores.

    Args:
        features: of views, [n, size].
        scores: logarithms of the base's, [n, base classes]; [n, 0] for none.
        classes: [n] whole numbers.
        count: of the classes.
    """
    roots = np.sign(features) * np.sqrt(np.abs(features.astype(np.float64)))
    columns = [roots / _spread(roots)]
    if scores.size:
        columns.append(scores / _spread(scores))
    table = np.concatenate(columns, axis=1)
    heads = np.mean(
        [cross_validated(table, classes, count, seed=seed, strengths=STRENGTHS)[1] for seed in SEEDS], axis=0
    )
    found: Array = (2 * _votes(roots, classes, count) + heads) / 3
    return found


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
    best = held.argmax(axis=1)
    doubts = held.max(axis=1) - held[np.arange(len(held)), classes]
    rows = np.flatnonzero((best != classes) & (doubts >= SURE * limits[best]))
    order = np.lexsort((rows, -doubts[rows]))
    return [LabelError(int(rows[i]), int(best[rows[i]]), float(doubts[rows[i]])) for i in order]


def _row(model: PictureModel, view: Array) -> tuple[Array, Array]:
    found = model.of_pixels(np.ascontiguousarray(view))
    batch = model.input.batch
    rows = [np.asarray(part, np.float32) for part in found]
    rows = [part[0] if batch > 1 and len(part) == batch else part for part in rows]
    return rows[0].reshape(-1), rows[1].reshape(-1) if len(rows) > 1 else np.zeros(0, np.float32)


def _votes(features: Array, classes: Array, count: int) -> Array:
    """Shares of the nearest examples' labels, each weighing its cosine, without the example itself."""
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    unit = unit - unit.mean(axis=0)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    table, wanted = unit.astype(np.float32), np.eye(count)[classes]
    most = min(NEIGHBOURS, len(table) - 1)
    found = np.zeros((len(table), count))
    for row in range(len(table)):
        like = table @ table[row]
        like[row] = -np.inf
        near = np.argpartition(-like, most - 1)[:most]
        found[row] = np.maximum(like[near], 0) @ wanted[near] + 1e-3 * wanted[near].sum(axis=0)
    shares: Array = found / found.sum(axis=1, keepdims=True)
    return shares


def _spread(table: Array) -> float:
    return float(np.sqrt(max(table.var(axis=0, dtype=np.float64).mean(), 1e-12)))
