"""Retrains: photos in folders and a base model in, a classifier of these classes out, judged on photos it never saw."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.retraining.base_model import Cut, found_cut, output_of
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks
from pocketgraph.apps.retraining.example_lists import CATEGORIES, Example, by_category, check_counts, examples_of
from pocketgraph.apps.retraining.retrained_graph import with_head
from pocketgraph.apps.retraining.softmax_head import Head, cross_validated, joined, solved
from pocketgraph.datasets import presets
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.graph import Graph

Array = np.ndarray[Any, Any]
SHARES = (0.25, 0.5, 0.75, 1.0)
"""Of the training examples, for the learning curve."""
STILL_RISING = 0.01
"""A curve that gained more than this in its last quarter would gain from more photos."""


@dataclass(frozen=True)
class Mistake:
    """An example whose best class is not its own."""

    path: str
    label: str
    answer: str
    score: float


@dataclass(frozen=True)
class Retrained:
    """A classifier of one's own classes, and how good it is.

    Attributes:
        graph: input, bottleneck and scores in one graph.
        labels: in the order of the scores.
        cut: where the base was cut.
        head: the new layer.
        counts: examples by category.
        accuracy: right answers by category, shares.
        confusion: int64 [classes, classes] of the test set: rows are what it is, columns what was answered.
        mistakes: of the test set, the surest first.
        curve: (training examples, accuracy on those that were held out), with more and more of them.
        calibration: mean difference of certainty and accuracy on held-out examples (ECE, ten bins).
        left_out: files that did not open.
    """

    graph: Graph
    labels: tuple[str, ...]
    cut: Cut
    head: Head
    counts: dict[str, int]
    accuracy: dict[str, float]
    confusion: Array
    mistakes: tuple[Mistake, ...]
    curve: tuple[tuple[int, float], ...]
    calibration: float
    left_out: tuple[str, ...]

    @property
    def wants_more_photos(self) -> bool:
        """Whether accuracy still rose with the last quarter of the photos."""
        return len(self.curve) > 1 and self.curve[-1][1] - self.curve[-2][1] > STILL_RISING

    def as_json(self) -> str:
        """The figures."""
        return json.dumps(
            {
                "labels": list(self.labels),
                "bottleneck": self.cut.tensor,
                "counts": self.counts,
                "accuracy": self.accuracy,
                "confusion": self.confusion.tolist(),
                "mistakes": [vars(entry) for entry in self.mistakes],
                "curve": [list(point) for point in self.curve],
                "calibration": self.calibration,
                "left_out": list(self.left_out),
                "C": self.head.strength,
            },
            indent=2,
        )


def retrain(
    graph: Graph,
    folder: str | os.PathLike[str],
    *,
    testing: float = 10,
    validation: float = 10,
    final: str = "final_result",
    bottleneck: str | None = None,
    bottleneck_dir: str = "",
    mirror: bool = True,
    class_weights: bool = False,
    steps: int = 500,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    notify: Callable[[str], None] = lambda text: None,
    **how: Any,
) -> Retrained:
    """Gives a classifier a new last layer for the classes of a folder.

    The layer is solved to convergence (softmax cross entropy with L2, whose weight cross-validation chooses) on what
    the base makes of the photos, and of the photos mirrored. The same photos, base and seed give the same bytes.

    Args:
        graph: the base: any classifier of pictures.
        folder: one sub-folder a class.
        testing, validation: percentages of photos that are held back, by a hash of their names.
        final: the name of the scores.
        bottleneck: the tensor that the layer takes; by default what the base's last layer with weights takes.
        bottleneck_dir: where features are kept for the next time; "" for nowhere.
        mirror: train on mirrored photos too; wrong where left and right matter, as for letters.
        class_weights: have small classes count as much as large ones.
        steps: iterations of the solver, at most.
        seed: of the cross-validation's parts.
        progress: told how many photos were read.
        notify: told what is easily overlooked, a sentence each.
        how: ``preset``, ``width``, ``height``, ``mean``, ``std``, ``input_layer``, ``feeds``, ``threads`` as in
            PictureModel.

    Raises:
        UsageError: the folder has not two classes, or the cut is not clear.
        FormatError: there is no such folder, or none of a class's photos opens.
    """
    place = os.fspath(folder)
    labels, examples = examples_of(place, testing=testing, validation=validation, warn=notify)
    cut = found_cut(graph, output_of(graph) if bottleneck is None else bottleneck, bottleneck)
    preset = presets.recognise(graph)
    if how.get("preset") is None and how.get("input_layer") is None and preset is not None:
        how["preset"] = preset.name
    model = PictureModel(graph, [cut.tensor], **how)
    left_out: list[str] = []

    def broken(error: FormatError) -> None:
        notify(f"{error}; it is left out")
        left_out.append(error.where or "")

    cached = Bottlenecks(model, _identity(graph), bottleneck_dir)
    total = len(examples) * (2 if mirror else 1)
    examples, features = cached.all(
        examples, progress=progress and (lambda done, _: progress(done, total)), broken=broken
    )
    for label in labels:
        check_counts(label, [entry for entry in examples if entry.label == label])
    places = {name: np.array(rows, np.int64) for name, rows in by_category(examples).items()}
    classes = np.array([labels.index(entry.label) for entry in examples], np.int64)
    if not np.isfinite(features).all():
        raise UsageError(f"the base gives numbers that are not finite at '{cut.tensor}'", hint="look at mean and std")
    train = places["training"]
    mirrored = None
    if mirror:
        chosen = [examples[row] for row in train]
        first = total - len(chosen)
        _, mirrored = cached.all(
            chosen, mirrored=True, progress=progress and (lambda done, _: progress(first + done, total))
        )
    weights = _class_weights(classes[train], len(labels)) if class_weights else None
    x, y = features[train], classes[train]
    strength, held = cross_validated(
        x, y, len(labels), mirrored=mirrored, groups=_groups(examples, train), seed=seed, class_weights=weights
    )
    both = joined(x, y, mirrored, np.ones(len(train), bool))
    head, _ = solved(*both, len(labels), strength, class_weights=weights, most=steps)
    scores = head.scores(features)
    answers = scores.argmax(axis=1)
    accuracy = {name: float((answers[rows] == classes[rows]).mean()) for name, rows in places.items() if len(rows)}
    accuracy["cross_validation"] = float((held.argmax(axis=1) == y).mean())
    judged = places["testing"]
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(confusion, (classes[judged], answers[judged]), 1)
    wrong = [row for row in judged if answers[row] != classes[row]]
    mistakes = sorted(
        (Mistake(examples[i].path, labels[classes[i]], labels[answers[i]], float(scores[i].max())) for i in wrong),
        key=lambda entry: -entry.score,
    )
    rank = _rank(model, cut)
    return Retrained(
        with_head(graph, cut.tensor, head, final, rank),
        tuple(labels),
        cut,
        head,
        {name: len(places[name]) for name in CATEGORIES},
        accuracy,
        confusion,
        tuple(mistakes),
        _curve(x, y, len(labels), strength, seed),
        calibration_error(held, y),
        tuple(left_out),
    )


def calibration_error(scores: Array, classes: Array, bins: int = 10) -> float:
    """Expected calibration error: |mean certainty - accuracy| over bins of certainty, by their shares.

    Guo et al., "On Calibration of Modern Neural Networks" (2017).
    """
    certainty, right = scores.max(axis=1), scores.argmax(axis=1) == classes
    which = np.minimum((certainty * bins).astype(int), bins - 1)
    found = 0.0
    for number in range(bins):
        inside = which == number
        if inside.any():
            found += inside.mean() * abs(float(certainty[inside].mean()) - float(right[inside].mean()))
    return found


def _identity(graph: Graph) -> str:
    """A digest of a graph's content."""
    from pocketgraph.formats.graphdef import chunks

    digest = hashlib.sha256(graph.extra)
    for chunk in chunks(graph):
        digest.update(chunk)
    return digest.hexdigest()


def _groups(examples: Sequence[Example], rows: Array) -> list[str]:
    """Photos of one thing (``_nohash_``) are one group."""
    return [examples[row].path.partition("_nohash_")[0] for row in rows]


def _class_weights(classes: Array, count: int) -> Array:
    """One over how frequent each class is."""
    return len(classes) / (count * np.maximum(np.bincount(classes, minlength=count), 1))


def _curve(x: Array, y: Array, count: int, strength: float, seed: int) -> tuple[tuple[int, float], ...]:
    """Accuracy on a fifth that is held out, trained on growing shares of the rest."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    held, rest = order[: max(1, len(y) // 5)], order[max(1, len(y) // 5) :]
    found = []
    for share in SHARES:
        some = rest[: max(count, round(len(rest) * share))]
        if len(np.unique(y[some])) < 2:
            continue
        head, _ = solved(x[some], y[some], count, strength)
        found.append((len(some), float((head.logits(x[held]).argmax(axis=1) == y[held]).mean())))
    return tuple(found)


def _rank(model: PictureModel, cut: Cut) -> int:
    """How many axes the cut tensor has."""
    blank = np.zeros((max(1, model.input.height), max(1, model.input.width), 3), np.uint8)
    (found,) = model.of_pixels(blank)
    if found.ndim < 1:
        raise UsageError(f"'{cut.tensor}' is a single number", hint=f"name another with {option('bottleneck_tensor')}")
    return found.ndim
