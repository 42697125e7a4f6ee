"""Looks through a folder of photos before a model is trained on it, and says what may be wrong with them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pocketgraph import cluster
from pocketgraph.apps.embeddings import photos_in
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.retraining.base_model import cut_model
from pocketgraph.apps.retraining.bottlenecks import content_digest
from pocketgraph.apps.retraining.example_lists import FEW, Example, category_of
from pocketgraph.apps.training_data.distribution_distance import FEWEST, Distance, distance
from pocketgraph.apps.training_data.duplicates import equal_pairs, groups_of, near_pairs
from pocketgraph.apps.training_data.label_errors import held_out_scores, label_errors, of_views
from pocketgraph.apps.training_data.photo_measures import Measures, measured
from pocketgraph.datasets import image_loading
from pocketgraph.datasets.sample_reading import Notify, unheard
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

DARK = 60
"""Of 255: a photo of which 99 of 100 pixels stay below is dark."""
BLURRED = 30.0
"""Variance of the Laplacian below which a photo is blurred wherever it is from."""
UNLIKE = 3.5
"""Robust standard deviations (of logarithms) below the other photos, at which one is blurred beside them."""
SHARP = 100.0
"""Variance of the Laplacian above which a photo is not blurred, however sharp the others are."""
CUT = 0.05  # of the rows or columns
SMALLEST, LONGEST = 64, 3.0  # pixels; times the other side
FEWEST_FOR_LABELS = 4
MEASURED = tuple(field.name for field in fields(Measures))
KINDS = {
    "broken": "does not open",
    "duplicate": "the same file twice",
    "near duplicate": "nearly the same photo twice",
    "label": "likely a wrong label",
    "odd size": "very small, or very long",
    "blurred": "blurred",
    "dark": "dark",
    "cut": "cut short, or with black bars",
}
"""What can be found, in the order of the report."""


@dataclass(frozen=True)
class Finding:
    """What may be wrong with one photo.

    Attributes:
        kind: one of ``KINDS``.
        path: of the photo, in the folder, with "/".
        why: a sentence.
        decision: what is proposed: "keep", "drop" or "relabel".
        label: the new label where it is "relabel".
        beside: the other photo of a duplicate.
    """

    kind: str
    path: str
    why: str
    decision: str
    label: str = ""
    beside: str = ""


@dataclass(frozen=True)
class DatasetReport:
    """What was found in a folder.

    Attributes:
        folder: that was looked through.
        counts: photos that open, by label.
        findings: by kind, the worst first.
        small: labels with few photos.
        apart: how far another folder's photos are from these; None where none was given.
        cross_validated: how many labels the scores that judge them agree with, a share; None without a model.
    """

    folder: str
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    small: tuple[str, ...]
    apart: Distance | None
    cross_validated: float | None

    def of_kind(self, kind: str) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    def as_json(self) -> str:
        """The report for programs."""
        return json.dumps(
            {
                "folder": self.folder,
                "counts": self.counts,
                "small": list(self.small),
                "cross_validated": self.cross_validated,
                "apart": None if self.apart is None else vars(self.apart),
                "findings": [vars(finding) for finding in self.findings],
            },
            indent=2,
        )


@dataclass(frozen=True)
class _Photo:
    example: Example
    name: str
    measures: Measures
    features: tuple[Array, Array] | None


@dataclass(frozen=True)
class _Looking:
    """What is measured of a photo, and what a model makes of it; a job for a cluster."""

    model: PictureModel | None

    def __call__(self) -> Callable[[str], dict[str, Array]]:
        return self.row

    def row(self, path: str) -> dict[str, Array]:
        """Measures by name and features by number; or "error"."""
        try:
            pixels = image_loading.read(path)
            with open(path, "rb") as file:
                content = file.read()
        except FormatError as error:
            return {"error": np.array(error.what)}
        except OSError as error:
            return {"error": np.array(f"it cannot be read: {error.strerror}")}
        found = vars(measured(content, pixels))
        features = () if self.model is None else of_views(self.model, pixels)
        return {
            name: np.asarray(value) for name, value in (*found.items(), *((str(i), f) for i, f in enumerate(features)))
        }


def _model_key(graph: Graph, tensor: str | None, how: dict[str, Any]) -> str:
    return repr((content_digest(graph), tensor, sorted((name, str(value)) for name, value in how.items())))


def check_dataset(
    folder: str | os.PathLike[str],
    graph: Graph | None = None,
    *,
    against: str | os.PathLike[str] = "",
    testing: float = 10,
    validation: float = 10,
    tensor: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    notify: Notify = unheard,
    **how: Any,
) -> DatasetReport:
    """Looks through photos in folders.

    Args:
        folder: one sub-folder a class.
        graph: a classifier of pictures, whatever of: finds wrong labels, and more near duplicates.
        against: photos as the model will meet them; how far they are from these.
        testing, validation: percentages that ``retrain`` will hold back, so that duplicates across the split are told.
        tensor: as in ``embed``.
        progress: told how many photos were read.
        notify: told of photos that lie deeper than in the folder of their class.
        how: as in PictureModel.

    Raises:
        FormatError: there is no such folder.
        UsageError: there is no photo in a class's folder, or ``against`` without a graph or with few photos.
    """
    place = os.fspath(folder)
    examples = [
        Example(entry.path, entry.label, category_of(entry.path, testing, validation))
        for entry in photos_in(place, notify, has_labels=True)
        if entry.label
    ]
    if not examples:
        raise UsageError("there is no folder with photos here", where=place, hint="make one folder a class in it")
    others = photos_in(os.fspath(against)) if against else []
    if others and graph is None:
        raise UsageError("how far photos are apart is told by a model", hint="pass one that takes pictures")
    model = None
    if graph is not None:
        model = cut_model(graph, tensor, **how)[1]
    paths = [entry.path for entry in (*examples, *others)]
    key = ""
    if cluster.current() is not None:
        key = cluster.source_key("check", None if graph is None else _model_key(graph, tensor, how), paths=paths)
    rows = _told(cluster.map_in_order(_Looking(model), paths, key=key), len(paths), progress)
    photos, findings = _opened(examples, rows, place)
    labels = sorted({entry.label for entry in examples})
    classes = np.array([labels.index(photo.example.label) for photo in photos], np.int64)
    counts = Counter(dict.fromkeys(labels, 0))
    counts.update(photo.example.label for photo in photos)
    held = _held_out(photos, classes, len(labels))
    findings += [*_duplicates(photos, held, classes), *_wrong_labels(photos, held, classes, labels), *_poor(photos)]
    apart = None
    if others:
        far, _ = _opened(others, rows, os.fspath(against))
        if min(len(far), len(photos)) < FEWEST:
            raise UsageError(f"fewer than {FEWEST} photos open on one side", where=os.fspath(against))
        apart = distance(_whole(photos), _whole(far))
    next(rows, None)  # there is none: what a cluster kept of them can go
    order = list(KINDS)
    findings.sort(key=lambda finding: order.index(finding.kind))
    return DatasetReport(
        place,
        dict(counts),
        tuple(findings),
        tuple(label for label in labels if counts[label] < FEW),
        apart,
        None if held is None else float((held.argmax(axis=1) == classes).mean()),
    )


def _told(
    rows: Iterator[Mapping[str, Array]], total: int, progress: Callable[[int, int], None] | None
) -> Iterator[Mapping[str, Array]]:
    """The rows, of each of which ``progress`` is told."""
    for done, row in enumerate(rows, 1):
        if progress is not None:
            progress(done, total)
        yield row


def _opened(
    entries: Sequence[Example], rows: Iterator[Mapping[str, Array]], inside: str
) -> tuple[list[_Photo], list[Finding]]:
    """The photos that open, out of the next rows, and what is found of the others."""
    photos, broken = [], []
    for entry in entries:
        seen = _photo(entry, next(rows), inside)
        if isinstance(seen, _Photo):
            photos.append(seen)
        else:
            name = os.path.relpath(entry.path, inside).replace(os.sep, "/")
            broken.append(Finding("broken", name, seen.what, "drop"))
    return photos, broken


def _photo(entry: Example, row: Mapping[str, Array], inside: str) -> _Photo | FormatError:
    """What ``_Looking`` found of an example, or why it does not open."""
    if "error" in row:
        return FormatError(str(row["error"]), where=entry.path)
    name = os.path.relpath(entry.path, inside).replace(os.sep, "/")
    features = (row["0"], row["1"]) if "0" in row else None
    if features is not None and not (np.isfinite(features[0]).all() and np.isfinite(features[1]).all()):
        raise UsageError("the model gives numbers that are not finite", where=entry.path, hint="look at mean and std")
    measures: dict[str, Any] = {part: row[part] if row[part].ndim else row[part].item() for part in MEASURED}
    return _Photo(entry, name, Measures(**measures), features)


def _whole(photos: list[_Photo]) -> Array:
    return np.stack([photo.features[0] for photo in photos if photo.features is not None])


def _held_out(photos: list[_Photo], classes: Array, count: int) -> Array | None:
    """Scores of the labels by what was learned without each photo; None where there is nothing to learn of."""
    found = [photo.features for photo in photos if photo.features is not None]
    if not found or count < 2 or np.bincount(classes, minlength=count).min() < FEWEST_FOR_LABELS:
        return None
    return held_out_scores(np.stack([entry[1] for entry in found]), classes, count)


def _duplicates(photos: list[_Photo], held: Array | None, classes: Array) -> Iterator[Finding]:
    """Of photos that show the same all but one: that of the best label, that trains."""

    def rank(place: int) -> tuple[float, bool, str]:
        fits = 0.0 if held is None else -float(held[place, classes[place]])
        mixed = len({photos[i].example.label for i in group}) > 1
        return (fits if mixed else 0.0, photos[place].example.category != "training", photos[place].name)

    equal = equal_pairs([photo.measures.digest for photo in photos])
    doubled = {second for _, second in equal}
    vectors = _whole(photos) if photos and photos[0].features is not None else None
    hashes = np.stack([photo.measures.frequencies for photo in photos]) if photos else np.zeros((0, 64), np.int8)
    near = [pair for pair in near_pairs(hashes, vectors) if not doubled & set(pair)]
    for kind, pairs in (("duplicate", equal), ("near duplicate", near)):
        for group in groups_of(pairs):
            first, *rest = sorted(group, key=rank)
            for place in rest:
                yield _duplicate(kind, photos[first], photos[place], judged=held is not None)


def _duplicate(kind: str, first: _Photo, other: _Photo, *, judged: bool) -> Finding:
    ours, theirs = other.example, first.example
    why = f"{'equal to' if kind == 'duplicate' else 'nearly the same as'} {first.name}"
    across = ours.category != theirs.category
    drop = kind == "duplicate" or across
    if ours.label != theirs.label:
        why += f", which is labelled '{theirs.label}'"
        drop = judged
    if across:
        why += f"; this one is for {ours.category}, that one for {theirs.category}"
    return Finding(kind, other.name, why, "drop" if drop else "keep", beside=first.name)


def _wrong_labels(photos: list[_Photo], held: Array | None, classes: Array, labels: list[str]) -> Iterator[Finding]:
    if held is None:
        return
    for error in label_errors(held, classes):
        photo, label = photos[error.place], labels[error.label]
        why = f"looks like '{label}' more than '{photo.example.label}', by {error.doubt:.2f}"
        yield Finding("label", photo.name, why, "relabel", label)


def _poor(photos: list[_Photo]) -> Iterator[Finding]:
    """What is odd about single photos, and beside the others."""
    logs = np.log([min(max(photo.measures.sharpness, 1e-3), 1e9) for photo in photos])
    middle = float(np.median(logs)) if len(logs) else 0.0
    spread = 1.4826 * float(np.median(np.abs(logs - middle))) if len(logs) else 0.0
    beside = min(float(np.log(SHARP)), middle - UNLIKE * spread) if len(logs) >= FEW else -np.inf
    least = max(float(np.log(BLURRED)), beside)
    for photo, sharp in sorted(zip(photos, logs, strict=True), key=lambda pair: float(pair[1])):
        found = photo.measures
        short, long = sorted((found.width, found.height))
        if short < SMALLEST or long > LONGEST * short:
            yield Finding("odd size", photo.name, f"{found.width} x {found.height} pixels", "keep")
        if found.light < DARK:
            yield Finding("dark", photo.name, f"99 of 100 pixels are below {found.light:.0f} of 255", "keep")
        elif sharp < least and short >= SMALLEST:
            yield Finding("blurred", photo.name, f"sharpness {found.sharpness:.1f}", "keep")
        if found.filled >= CUT:
            yield Finding(
                "cut", photo.name, f"{100 * found.filled:.0f} % at an edge are filled with one colour", "keep"
            )
