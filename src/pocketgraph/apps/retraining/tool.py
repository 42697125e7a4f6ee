"""Retrains: photos in folders and a base model in, a classifier of these classes out, judged on photos it never saw."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.apps.live.speech import hears
from pocketgraph.apps.retraining.base_model import Cut, cut_model, found_cut, output_of
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks, content_digest
from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.apps.retraining.example_lists import CATEGORIES, Example, by_category, check_counts, examples_of
from pocketgraph.apps.retraining.fine_tuning import Tuning, fine_tuned
from pocketgraph.apps.retraining.judgement import (
    STILL_RISING,
    Certainty,
    Mistake,
    calibration_error,
    certainties,
    confusion_of,
    gain_of_last_half,
    learning_curve,
    mistakes_of,
)
from pocketgraph.apps.retraining.photo_features import DISTORTED, MIRRORED, PLAIN, FeatureModel, PhotoFeatures
from pocketgraph.apps.retraining.recording_features import RECORDINGS, RecordingFeatures
from pocketgraph.apps.retraining.retrained_graph import with_head
from pocketgraph.apps.retraining.softmax_head import Head, cross_validated, joined, solved
from pocketgraph.apps.retraining.table_features import (
    TableFeatures,
    columns_alike,
    examples_of_table,
    is_table,
    read_table,
    taken_by,
)
from pocketgraph.apps.retraining.trained_tail import tail_of
from pocketgraph.datasets import file_lists
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.graph import Graph
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.graph.tensor import Array

WARM_UPS, RUNS = 2, 11
ITERATIONS = 500
HEAD_ALONE = "head_cross_validation"
MIRROR = Distortions(flip=True)


@dataclass(frozen=True)
class Retrained:
    """A classifier of one's own classes, and how good it is.

    Attributes:
        graph: input, bottleneck and scores in one graph.
        labels: in the order of the scores.
        cut: where the base was cut.
        head: the new layer.
        trained_layers: of the base that were trained too.
        counts: examples by category.
        accuracy: right answers by category, shares.
        confusion: int64 [classes, classes] of the test set: rows are what it is, columns what was answered.
        held_confusion: the same of the training set, each example answered by a head that was solved without it.
        mistakes: of the test set, the surest first.
        held_mistakes: of the training set, likewise.
        curve: (training examples, accuracy on those that were held out), with more and more of them.
        certainties: how sure and how often right the heads are on examples that they were solved without.
        scaling: mean and std by which pixels are fed; None for recordings.
        milliseconds: that an example takes on this machine, the median.
        figures: (step, what was measured there) of the training.
        left_out: files that did not open.
    """

    graph: Graph
    labels: tuple[str, ...]
    cut: Cut
    head: Head
    trained_layers: tuple[str, ...]
    counts: dict[str, int]
    accuracy: dict[str, float]
    confusion: Array
    held_confusion: Array
    mistakes: tuple[Mistake, ...]
    held_mistakes: tuple[Mistake, ...]
    curve: tuple[tuple[int, float], ...]
    certainties: tuple[Certainty, ...]
    scaling: tuple[float, float] | None
    milliseconds: float
    figures: tuple[tuple[int, Mapping[str, float]], ...]
    left_out: tuple[str, ...]

    @property
    def calibration(self) -> float:
        """Mean difference of certainty and accuracy on held-out examples (ECE, ten bins)."""
        return calibration_error(self.certainties)

    @property
    def wants_more_photos(self) -> bool:
        """Whether accuracy still rose with the second half of the photos."""
        gain = gain_of_last_half(self.curve)
        return gain is not None and gain > STILL_RISING

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
                "certainties": [vars(one) for one in self.certainties],
                "milliseconds": self.milliseconds,
                "left_out": list(self.left_out),
                "C": self.head.strength,
            },
            indent=2,
        )


def retrain(
    graph: Graph | None,
    folder: str | os.PathLike[str],
    *,
    testing: float = 10,
    validation: float = 10,
    final: str = "final_result",
    bottleneck: str | None = None,
    bottleneck_dir: str = "",
    distortions: Distortions = MIRROR,
    copies: int = 8,
    tuning: Tuning | None = None,
    class_weights: bool = False,
    steps: int = ITERATIONS,
    seed: int = 0,
    sample_rate: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    notify: Callable[[str], None] = lambda text: None,
    **how: Any,
) -> Retrained:
    """Gives a classifier a new last layer for the classes of a folder.

    The layer is solved to convergence (softmax cross entropy with L2, whose weight cross-validation chooses) on what
    the base makes of the photos, and of the photos mirrored. The same photos, base and seed give the same bytes.

    Args:
        graph: the base: any classifier of pictures, recordings or rows of numbers; None for a table alone, whose
            columns are made alike.
        folder: one sub-folder a class; or a table: a .csv or .tsv file with a column of classes, or an .npz file with
            ``labels`` and one other array.
        testing, validation: percentages of photos that are held back, by a hash of their names.
        final: the name of the scores.
        bottleneck: the tensor that the layer takes; by default what the base's last layer with weights takes.
        bottleneck_dir: where features are kept for the next time; "" for nowhere.
        distortions: of the photos that train; mirroring is wrong where left and right matter, as for letters.
        copies: distorted ones of each photo, where they are distorted otherwise than by mirroring.
        tuning: train the last layers too, on distorted photos; None for the new layer alone.
        class_weights: have small classes count as much as large ones.
        steps: iterations of the solver, at most.
        seed: of the cross-validation's parts, the distortions and the batches.
        sample_rate: samples a second that a base of recordings hears; by default as its graph says, or 16000.
        progress: told the stage, how much is done, and of how much.
        notify: told what is easily overlooked, a sentence each.
        how: ``preset``, ``width``, ``height``, ``mean``, ``std``, ``input_layer``, ``feeds``, ``threads`` as in
            PictureModel.

    Raises:
        UsageError: the folder has not two classes, the cut is not clear, or the base is a .tflite or .onnx file.
        FormatError: there is no such folder, or none of a class's photos opens.
    """
    if graph is not None:
        refuse_finished(graph, "retrain")
    place = os.fspath(folder)
    shares = {"testing": testing, "validation": validation}
    if is_table(place):
        base = _base_of_table(place, graph, bottleneck, shares, tuning, notify, how.get("threads"))
        bottleneck_dir = ""  # rows are quick, and many
    else:
        base = _base_of_files(
            place, graph, bottleneck, shares, distortions, tuning, notify, seed=seed, rate=sample_rate, how=how
        )
    source, cut, labels, tuning = base.source, base.cut, base.labels, base.tuning
    left_out: list[str] = []

    def broken(error: FormatError) -> None:
        notify(f"{error}; it is left out")
        left_out.append(error.where or "")

    cached = Bottlenecks(source, content_digest(base.graph), bottleneck_dir)
    data = _features(base, cached, progress and partial(progress, "photos"), broken)
    chosen, x, y, variants = _training(base, data, cached, copies, progress and partial(progress, "variants"))
    weights = _class_weights(y, len(labels)) if class_weights else None
    groups = [entry.group for entry in chosen]
    strength, held = cross_validated(
        x, y, len(labels), variants=variants, groups=groups, seed=seed, class_weights=weights
    )
    figures: list[tuple[int, Mapping[str, float]]] = []
    head, _ = solved(
        *joined(x, y, variants, np.ones(len(chosen), bool)),
        len(labels),
        strength,
        class_weights=weights,
        most=steps,
        on_step=lambda step, loss: figures.append((step, {"cross_entropy": loss})),
    )
    trained, tail = base.graph, None
    if tuning is not None:
        tail = tail_of(base.graph, source.entrance, cut.tensor, tuning.layers)
        by_name = {name: [data.examples[row] for row in data.places[name]] for name in CATEGORIES}
        trained, head = fine_tuned(
            tail, source, cut.tensor, head, by_name, labels, tuning, folder=bottleneck_dir, class_weights=weights,
            seed=seed, threads=how.get("threads"), progress=progress,
            on_step=lambda step, measured: figures.append((step, measured)),
        )  # fmt: skip
    made = with_head(trained, cut.tensor, head, final, _rank(source, cut))
    final_model = source.at(made, final)
    scores = head.scores(data.features)
    if tail is not None:
        scores = Bottlenecks(final_model, "").all(data.examples)[1][:, 0].astype(np.float64)
    judged = data.places["testing"]
    return Retrained(
        made,
        tuple(labels),
        cut,
        head,
        () if tail is None else tail.layers,
        {name: len(data.places[name]) for name in CATEGORIES},
        _accuracy(data, scores, held, HEAD_ALONE if tail is not None else "cross_validation"),
        confusion_of(data.classes[judged], scores[judged].argmax(axis=1), len(labels)),
        confusion_of(y, held.argmax(axis=1), len(labels)),
        mistakes_of([data.examples[row] for row in judged], scores[judged], data.classes[judged], labels),
        mistakes_of(chosen, held, y, labels),
        learning_curve(x, y, len(labels), strength, groups, seed),
        certainties(held, y),
        source.scaling,
        _milliseconds(final_model.prepared(chosen[0].path)),
        tuple(figures),
        tuple(left_out),
    )


class _Base(NamedTuple):
    """What is retrained, and how it takes examples."""

    graph: Graph
    cut: Cut
    source: FeatureModel
    labels: list[str]
    examples: list[Example]
    distortions: Distortions
    tuning: Tuning | None


def _base_of_table(
    place: str,
    graph: Graph | None,
    bottleneck: str | None,
    shares: Mapping[str, float],
    tuning: Tuning | None,
    notify: Callable[[str], None],
    threads: int | None,
) -> _Base:
    """A base of rows; without a graph one that makes the table's columns alike."""
    rows = read_table(place, None if graph is None else taken_by(graph, _cut(graph, bottleneck).tensor))
    labels, examples = examples_of_table(rows, **shares, warn=notify)
    graph, cut = (graph, _cut(graph, bottleneck)) if graph is not None else columns_alike(rows, examples)
    source = TableFeatures(graph, cut.tensor, rows, threads=threads)
    tuning = tuning and replace(tuning, plain=(PLAIN,), variants=1)
    return _Base(graph, cut, source, labels, examples, Distortions(), tuning)


def _base_of_files(
    place: str,
    graph: Graph | None,
    bottleneck: str | None,
    shares: Mapping[str, float],
    distortions: Distortions,
    tuning: Tuning | None,
    notify: Callable[[str], None],
    *,
    seed: int,
    rate: int | None,
    how: dict[str, Any],
) -> _Base:
    """A base of photos or recordings."""
    if graph is None:
        raise UsageError("no base model is given", where=place, hint="only a table (.csv, .tsv, .npz) needs none")
    is_of_sound = hears(graph)
    kind = RECORDINGS if is_of_sound else file_lists.SUFFIXES
    labels, examples = examples_of(place, **shares, suffixes=kind, warn=notify)
    if is_of_sound:
        distortions = replace(distortions, flip=False)
    if tuning is not None:
        distortions = distortions if distortions else replace(distortions, phone=True)
        tuning = replace(tuning, plain=(PLAIN, MIRRORED) if distortions.flip else (PLAIN,))
    if is_of_sound:
        cut = _cut(graph, bottleneck)
        source: FeatureModel = RecordingFeatures(graph, cut.tensor, rate=rate, threads=how.get("threads"), seed=seed)
    else:
        cut, model = cut_model(graph, bottleneck, **how)
        source = PhotoFeatures(model, distortions, seed)
    return _Base(graph, cut, source, labels, examples, distortions, tuning)


class _Features(NamedTuple):
    """The examples that opened: what the base makes of each, its class, and the rows of each category."""

    examples: list[Example]
    features: Array
    classes: Array
    places: dict[str, Array]


def _features(
    base: _Base,
    cached: Bottlenecks,
    progress: Callable[[int, int], None] | None,
    broken: Callable[[FormatError], None],
) -> _Features:
    """
    Raises:
        UsageError: a class has too few examples that open, or the base gives numbers that are not finite.
    """
    examples, plain = cached.all(base.examples, progress=progress, broken=broken)
    for label in base.labels:
        check_counts(label, [entry for entry in examples if entry.label == label])
    places = {name: np.array(rows, np.int64) for name, rows in by_category(examples).items()}
    classes = np.array([base.labels.index(entry.label) for entry in examples], np.int64)
    features = plain[:, 0]
    if not np.isfinite(features).all():
        tensor = base.cut.tensor
        raise UsageError(f"the base gives numbers that are not finite at '{tensor}'", hint="look at mean and std")
    return _Features(examples, features, classes, places)


def _training(
    base: _Base,
    data: _Features,
    cached: Bottlenecks,
    copies: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[Example], Array, Array, Array | None]:
    """The examples that train, their features and classes, and the features of their variants, if there are any."""
    train = data.places["training"]
    chosen = [data.examples[row] for row in train]
    more = [MIRRORED] if base.distortions.flip else []
    more += range(DISTORTED, DISTORTED + copies) if base.distortions and base.tuning is None else []
    variants = cached.all(chosen, more, progress=progress)[1] if more else None
    return chosen, data.features[train], data.classes[train], variants


def _accuracy(data: _Features, scores: Array, held: Array, of_held: str) -> dict[str, float]:
    """Shares of right answers by category, and under ``of_held`` that of training examples that were held out."""
    answers = scores.argmax(axis=1)
    found = {
        name: float((answers[rows] == data.classes[rows]).mean()) for name, rows in data.places.items() if len(rows)
    }
    found[of_held] = float((held.argmax(axis=1) == data.classes[data.places["training"]]).mean())
    return found


def _class_weights(classes: Array, count: int) -> Array:
    """One over how frequent each class is."""
    return len(classes) / (count * np.maximum(np.bincount(classes, minlength=count), 1))


def _milliseconds(run: Callable[[], object]) -> float:
    """The median of some runs."""
    times = []
    for _ in range(WARM_UPS + RUNS):
        start = perf_counter()
        run()
        times.append(1000 * (perf_counter() - start))
    return float(np.median(times[WARM_UPS:]))


def _rank(source: FeatureModel, cut: Cut) -> int:
    """How many axes the cut tensor has."""
    rank = source.rank()
    if rank < 1:
        raise UsageError(f"'{cut.tensor}' is a single number", hint=f"name another with {option('bottleneck_tensor')}")
    return rank


def _cut(graph: Graph, bottleneck: str | None) -> Cut:
    return found_cut(graph, output_of(graph) if bottleneck is None else bottleneck, bottleneck)
