"""Retrains: photos in folders and a base model in, a classifier of these classes out, judged on photos it never saw."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from pocketgraph.apps.retraining.base_model import Cut
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks, content_digest
from pocketgraph.apps.retraining.classifier_metrics import (
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
from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.apps.retraining.example_lists import CATEGORIES
from pocketgraph.apps.retraining.fine_tuning import Tuning, fine_tuned
from pocketgraph.apps.retraining.photo_features import FeatureModel
from pocketgraph.apps.retraining.retrained_graph import with_head
from pocketgraph.apps.retraining.softmax_head import Head
from pocketgraph.apps.retraining.table_features import is_table
from pocketgraph.apps.retraining.trained_tail import tail_of
from pocketgraph.apps.retraining.training_features import (
    ExampleFeatures,
    base_of_files,
    base_of_table,
    features_of,
    told_twice,
    training_of,
)
from pocketgraph.datasets.sample_reading import Notify, unheard
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
    notify: Notify = unheard,
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
        base = base_of_table(place, graph, bottleneck, shares, tuning, notify, how.get("threads"))
        bottleneck_dir = ""  # rows are quick, and many
    else:
        base = base_of_files(
            place, graph, bottleneck, shares, distortions, tuning, notify, seed=seed, rate=sample_rate, how=how
        )
    source, cut, labels, tuning = base.source, base.cut, base.labels, base.tuning
    left_out: list[str] = []

    def broken(error: FormatError) -> None:
        notify(f"{error}; it is left out")
        left_out.append(error.where or "")

    cached = Bottlenecks(source, content_digest(base.graph), bottleneck_dir)
    data = features_of(base, cached, progress and partial(progress, "examples"), broken)
    if not is_table(place):
        for text in told_twice(data):
            notify(text if source.scaling is None else f"{text}; `pocketgraph dataset check` names them all")
    training = training_of(base, data, cached, copies, class_weights, progress and partial(progress, "variants"))
    strength, held = training.cross_validated(seed)
    figures: list[tuple[int, Mapping[str, float]]] = []
    head = training.solved(strength, steps, lambda step, loss: figures.append((step, {"cross_entropy": loss})))
    trained, tail = base.graph, None
    if tuning is not None:
        tail = tail_of(base.graph, source.entrance, cut.tensor, tuning.layers)
        by_name = {name: [data.examples[row] for row in data.places[name]] for name in CATEGORIES}
        trained, head = fine_tuned(
            tail, source, cut.tensor, head, by_name, labels, tuning, folder=bottleneck_dir,
            class_weights=training.weights, seed=seed, threads=how.get("threads"), progress=progress,
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
        confusion_of(training.classes, held.argmax(axis=1), len(labels)),
        mistakes_of([data.examples[row] for row in judged], scores[judged], data.classes[judged], labels),
        mistakes_of(training.examples, held, training.classes, labels),
        learning_curve(training.features, training.classes, len(labels), strength, training.groups, seed),
        certainties(held, training.classes),
        source.scaling,
        _milliseconds(final_model.prepared(training.examples[0].path)),
        tuple(figures),
        tuple(left_out),
    )


def _accuracy(data: ExampleFeatures, scores: Array, held: Array, of_held: str) -> dict[str, float]:
    """Shares of right answers by category, and under ``of_held`` that of training examples that were held out."""
    answers = scores.argmax(axis=1)
    found = {
        name: float((answers[rows] == data.classes[rows]).mean()) for name, rows in data.places.items() if len(rows)
    }
    found[of_held] = float((held.argmax(axis=1) == data.classes[data.places["training"]]).mean())
    return found


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
