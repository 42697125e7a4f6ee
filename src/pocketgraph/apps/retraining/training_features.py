"""What is retrained, and on what: a base that takes photos, recordings or rows, and its features of the examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.apps.live.speech import hears
from pocketgraph.apps.retraining.base_model import Cut, cut_model, found_cut, output_of
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks
from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.apps.retraining.example_lists import Example, by_category, check_counts, examples_of
from pocketgraph.apps.retraining.fine_tuning import Tuning
from pocketgraph.apps.retraining.photo_features import DISTORTED, MIRRORED, PLAIN, FeatureModel, PhotoFeatures
from pocketgraph.apps.retraining.recording_features import RecordingFeatures
from pocketgraph.apps.retraining.softmax_head import Head, cross_validated, joined, solved
from pocketgraph.apps.retraining.table_features import (
    TableFeatures,
    columns_alike,
    examples_of_table,
    read_table,
    taken_by,
)
from pocketgraph.datasets import file_lists
from pocketgraph.datasets.image_loading import told_turned
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted


class RetrainedBase(NamedTuple):
    """What is retrained, and how it takes examples."""

    graph: Graph
    cut: Cut
    source: FeatureModel
    labels: list[str]
    examples: list[Example]
    distortions: Distortions
    tuning: Tuning | None


def base_of_table(
    place: str,
    graph: Graph | None,
    bottleneck: str | None,
    shares: Mapping[str, float],
    tuning: Tuning | None,
    notify: Callable[[str], None],
    threads: int | None,
) -> RetrainedBase:
    """A base of rows; without a graph one that makes the table's columns alike."""
    rows = read_table(place, None if graph is None else taken_by(graph, _cut(graph, bottleneck).tensor))
    labels, examples = examples_of_table(rows, **shares, warn=notify)
    graph, cut = (graph, _cut(graph, bottleneck)) if graph is not None else columns_alike(rows, examples)
    source = TableFeatures(graph, cut.tensor, rows, threads=threads)
    tuning = tuning and replace(tuning, plain=(PLAIN,), variants=1)
    return RetrainedBase(graph, cut, source, labels, examples, Distortions(), tuning)


def base_of_files(
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
) -> RetrainedBase:
    """A base of photos or recordings."""
    if graph is None:
        raise UsageError("no base model is given", where=place, hint="only a table (.csv, .tsv, .npz) needs none")
    is_of_sound = hears(graph)
    kind = file_lists.RECORDINGS if is_of_sound else file_lists.SUFFIXES
    labels, examples = examples_of(place, **shares, suffixes=kind, warn=notify)
    if not is_of_sound and (turned := told_turned([entry.path for entry in examples])):
        notify(f"{place}: {turned}")
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
    return RetrainedBase(graph, cut, source, labels, examples, distortions, tuning)


class ExampleFeatures(NamedTuple):
    """The examples that opened: what the base makes of each, its class, and the rows of each category."""

    examples: list[Example]
    features: Array
    classes: Array
    places: dict[str, Array]


def features_of(
    base: RetrainedBase,
    cached: Bottlenecks,
    progress: Callable[[int, int], None] | None,
    broken: Callable[[FormatError], None],
) -> ExampleFeatures:
    """What the base makes of the examples that open.

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
    return ExampleFeatures(examples, features, classes, places)


def told_twice(data: ExampleFeatures) -> Iterator[str]:
    """Says which examples of two classes look the same to the base, and which held back look so as ones that train."""
    first: dict[bytes, int] = {}
    digests = (blake2b(made.tobytes(), digest_size=16).digest() for made in data.features)
    pairs = [(row, same) for row, made in enumerate(digests) if (same := first.setdefault(made, row)) != row]
    classes, trains = data.classes, {*data.places["training"].tolist()}
    others = [(row, same) for row, same in pairs if classes[row] != classes[same]]
    seen = [pair for pair in pairs if classes[pair[0]] == classes[pair[1]] and len(trains.intersection(pair)) == 1]
    for found, harm in (
        (others, "in another class, too"),
        (seen, "on both sides of the split, so that the accuracy is too good"),
    ):
        if found:
            one, other = (data.examples[row].path for row in found[0])
            many = counted(len(found), "example is", "examples are")
            yield f"{many} {harm}, as {one}, which looks the same to the base as {other}"


class HeadTraining(NamedTuple):
    """What the new layer is solved on.

    Attributes:
        examples: those that train.
        features, classes: of each what the base makes of it, and the number of its class.
        variants: the features of each example's variants; None where there are none.
        class_count: how many classes there are.
        weights: what each class counts; None for one each.
    """

    examples: list[Example]
    features: Array
    classes: Array
    variants: Array | None
    class_count: int
    weights: Array | None

    @property
    def groups(self) -> list[str]:
        """Of each example the group that is held out together."""
        return [entry.group for entry in self.examples]

    def cross_validated(self, seed: int) -> tuple[float, Array]:
        """The best weight of L2, and the scores of each example by what was solved without its group."""
        return cross_validated(
            self.features, self.classes, self.class_count, variants=self.variants, groups=self.groups, seed=seed,
            class_weights=self.weights,
        )  # fmt: skip

    def solved(self, strength: float, most: int, on_step: Callable[[int, float], None]) -> Head:
        """The layer, in at most so many iterations."""
        together = joined(self.features, self.classes, self.variants, np.ones(len(self.examples), bool))
        return solved(*together, self.class_count, strength, class_weights=self.weights, most=most, on_step=on_step)[0]


def training_of(
    base: RetrainedBase,
    data: ExampleFeatures,
    cached: Bottlenecks,
    copies: int,
    class_weights: bool,
    progress: Callable[[int, int], None] | None,
) -> HeadTraining:
    """What trains, with the variants of each example that distortions ask for."""
    train = data.places["training"]
    chosen = [data.examples[row] for row in train]
    more = [MIRRORED] if base.distortions.flip else []
    more += range(DISTORTED, DISTORTED + copies) if base.distortions and base.tuning is None else []
    variants = cached.all(chosen, more, progress=progress)[1] if more else None
    classes, count = data.classes[train], len(base.labels)
    weights = len(classes) / (count * np.maximum(np.bincount(classes, minlength=count), 1)) if class_weights else None
    return HeadTraining(chosen, data.features[train], classes, variants, count, weights)


def _cut(graph: Graph, bottleneck: str | None) -> Cut:
    return found_cut(graph, output_of(graph) if bottleneck is None else bottleneck, bottleneck)
