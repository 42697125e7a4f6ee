"""Says what is in pictures: a classifier graph, its labels, and the best scores for each picture."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.datasets import file_lists, image_loading
from pocketgraph.datasets.class_labels import best_classes, class_name, read_labels
from pocketgraph.datasets.class_scores import may_give_logits
from pocketgraph.datasets.image_loading import scale_text
from pocketgraph.datasets.sample_reading import Notify
from pocketgraph.errors import FormatError, RunError, UsageError, option, path_of
from pocketgraph.freezing.ready_models import ready
from pocketgraph.graph import Graph
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.pages.quantities import counted
from pocketgraph.passes.training_switches import switches_note
from pocketgraph.quantization.class_names import class_names, class_names_of_model, labels_beside


@dataclass(frozen=True)
class Prediction:
    """One answer for one picture.

    Attributes:
        index: which of the output's scores this is.
        label: its line of the labels file, or ``class N`` where the file has no such line.
        score: as the graph gave it.
    """

    index: int
    label: str
    score: float

    def __str__(self) -> str:
        """As the original C++ program prints it: ``military uniform (653): 0.834305``."""
        return f"{self.label} ({self.index}): {self.score:g}"


@dataclass(frozen=True)
class LabelledPicture:
    """What was found in a picture.

    Attributes:
        picture: its file; "" for pixels.
        predictions: the best labels, best first.
        problem: why there are none; else None.
    """

    picture: str
    predictions: tuple[Prediction, ...]
    problem: FormatError | None = None

    def __repr__(self) -> str:
        found = self.problem or ", ".join(map(str, self.predictions))
        return f"<{self.picture or 'picture'}: {found}>"


Pictures = str | os.PathLike[str] | np.ndarray[Any, Any]


def label_image(
    model: Graph | str | os.PathLike[str],
    pictures: Pictures | Iterable[Pictures],
    labels: Sequence[str] | str | os.PathLike[str] = (),
    *,
    top: int = 5,
    preset: str | None = None,
    input_layer: str | None = None,
    output_layer: str | None = None,
    input_width: int | None = None,
    input_height: int | None = None,
    input_mean: float | None = None,
    input_std: float | None = None,
    feeds: Mapping[str, Any] | None = None,
    signature: str | None = None,
    threads: int | None = None,
    notify: Notify | None = None,
) -> list[LabelledPicture]:
    """Says what is in pictures with an image classifier.

    >>> import numpy as np
    >>> from pocketgraph.graph.text_format import parse
    >>> averages = parse('''
    ...     x = Placeholder(dtype=float, shape=[1,2,2,3])
    ...     axes = Const(int32 [1, 2])
    ...     scores = Mean(x, axes, T=float, Tidx=int32)
    ... ''')
    >>> label_image(averages, np.uint8([[[255, 51, 0]]]), ["red", "green", "blue"], top=2)
    [<picture: red (0): 1, green (1): 0.2>]

    Args:
        model: the classifier: a graph, a model file, or the directory of a SavedModel or a training.
        pictures: files, folders of them, or pixels, uint8 [height, width, 3], also as an image of Pillow or a tensor;
            one or several.
        labels: one name for each score, or the file with one a line; by default those that a LiteRT file
            or a table of the graph holds, or, with ``notify``, a file of labels beside the model.
        top: how many labels to give.
        preset, input_layer, output_layer: see ``PictureModel``; found where they are not given.
        input_width, input_height, input_mean, input_std: likewise; pixels are fed as (pixel - mean) / std.
        feeds: values for other placeholders.
        signature: of a SavedModel, the one that says what goes in and comes out; by default the main one.
        threads: as for Session.
        notify: told what is easily overlooked, a sentence each.

    Returns:
        One entry a picture; one that cannot be read has no predictions and says why.

    Raises:
        UsageError: the graph takes no pictures, not these, or needs feeds that are not given.
        FormatError: the model or the only picture cannot be read.
        RunError: the graph does not run, or gives not one score a class.
    """
    labeler = labeler_of(
        model, labels, notify=notify, signature=signature, preset=preset, input_layer=input_layer,
        output_layer=output_layer, width=input_width, height=input_height, mean=input_mean, std=input_std,
        feeds=feeds, threads=threads,
    )  # fmt: skip
    several: Iterable[Any] = [pictures]
    if isinstance(pictures, Iterable) and not isinstance(pictures, str | os.PathLike) and _pixels(pictures) is None:
        several = pictures
    given: list[str | np.ndarray[Any, Any]] = []
    for one in several:
        pixels = _pixels(one)
        given += pictures_at(path_of(one, "a picture")) if pixels is None else [pixels]
    return list(labelled(labeler, given, top, notify))


def _pixels(picture: Any) -> np.ndarray[Any, Any] | None:
    """The numbers of an array, a tensor or an image of Pillow, this in colour; None of paths."""
    picture = picture.convert("RGB") if hasattr(picture, "convert") else picture
    if isinstance(picture, str | bytes) or not (
        hasattr(picture, "__array__") or hasattr(picture, "__array_interface__")
    ):
        return None
    found = np.asarray(picture)
    return found if found.dtype.kind in "biuf" else None


def labeler_of(
    model: Graph | str | os.PathLike[str],
    labels: Sequence[str] | str | os.PathLike[str],
    *,
    preset: str | None,
    notify: Notify | None,
    signature: str | None = None,
    **how: Any,
) -> Labeler:
    """The labeler of a model; ``how`` as for Labeler, the other arguments as for label_image."""
    names = read_labels(labels) if isinstance(labels, str | os.PathLike) else labels
    place: str | os.PathLike[str] | None = None
    if not isinstance(model, Graph):
        wanted = [how["output_layer"]] if how.get("output_layer") else None
        found = ready(model, wanted, signature=signature)
        if notify is not None:
            for note in found.notes:
                notify(note)
        if wanted and not names:
            names = class_names_of_model(model, found, wanted[0], signature)
        place, model = model, found.graph
    labeler = Labeler(model, names, preset=preset, **how)
    if place is not None and not labeler.labels and notify is not None:
        labeler.labels = tuple(labels_beside(place, model, labeler.outputs[0], notify))
    of_file = labeler.metadata_of_file
    says_scaling = of_file is not None and of_file.scaling is not None
    if labeler.preset and not preset and not says_scaling and notify is not None:
        notify(
            f"the layers are those of {option('preset')}={labeler.preset.name}: input_mean "
            f"{scale_text(labeler.mean)}, input_std {scale_text(labeler.std)}"
        )
    if labeler.switches and notify is not None:
        notify(switches_note(labeler.switches))
    if labeler.inferred is not None and not labeler.inferred.is_usual and notify is not None:
        notify(labeler.inferred.note())
    return labeler


def labelled(
    labeler: Labeler, pictures: Sequence[str | np.ndarray[Any, Any]], top: int, notify: Notify | None = None
) -> Iterator[LabelledPicture]:
    """The pictures' best labels, one picture after the other.

    Raises:
        FormatError: the only picture cannot be read.
    """
    is_told = False
    for picture in pictures:
        name = picture if isinstance(picture, str) else ""
        try:
            scores = labeler.scores(picture)
        except FormatError as error:
            if len(pictures) == 1:
                raise
            yield LabelledPicture(name, (), error)
            continue
        if not is_told and notify is not None and (warning := mismatch(labeler.labels, len(scores))):
            notify(warning)
        is_told = True
        if name and notify is not None and image_loading.is_turned(name):
            notify(f"{name} has a mark to be turned (EXIF); models see it as it is stored, as in TensorFlow")
        yield LabelledPicture(name, tuple(labeler.best(scores, top)))


def pictures_at(path: str) -> list[str]:
    """The pictures of a folder and of those inside, in order; a file by itself.

    Raises:
        UsageError: it is a recording.
    """
    if not os.path.isdir(path):
        if file_lists.is_recording(path):
            raise UsageError("this is a recording", where=path, hint="pocketgraph label_wav says what is heard in it")
        return [path]
    files, _ = file_lists.of_folder(path)
    return sorted(file for file in files if file_lists.is_picture(file))


class Labeler(PictureModel):
    """Labels pictures with one graph.

    Args:
        graph: a classifier.
        labels: one name for each score; by default those that a LiteRT file or a table of the graph holds.
        output_layer: the node that gives the scores; by default the one node that nothing consumes.
        how: ``preset``, ``input_layer``, ``width``, ``height``, ``mean``, ``std``, ``feeds``, ``threads`` as in
            PictureModel.

    Raises:
        UsageError: the graph has not these layers, takes no pictures, not pictures of this size, or needs feeds that
            are not given.
    """

    def __init__(
        self, graph: Graph, labels: Sequence[str] = (), *, output_layer: str | None = None, **how: Any
    ) -> None:
        super().__init__(graph, [output_layer] if output_layer else [], **how)
        self.labels = tuple(labels) or (self.metadata_of_file.labels if self.metadata_of_file else ())
        if not self.labels and self.outputs and not is_model_file(graph):
            self.labels = tuple(class_names(graph, self.outputs[0]))
        self.gives_logits = may_give_logits(graph, self.outputs[0])

    def scores(self, picture: str | os.PathLike[str] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The graph's scores for a picture, a float array with one entry a class.

        Args:
            picture: a file, or pixels, uint8 [height, width, 3].

        Raises:
            FormatError: the file is no picture.
            RunError: the graph cannot run, or its output is not one score a class.
        """
        (scores,) = self.of_pixels(picture) if isinstance(picture, np.ndarray) else self.of_file(picture)
        if self.input.batch > 1 and scores.ndim > 0 and scores.shape[0] == self.input.batch:
            scores = scores[0]
        if scores.size == 0 or scores.size != max(scores.shape, default=0) or scores.dtype.kind != "f":
            raise RunError(
                f"the output is {scores.dtype}{list(scores.shape)}, not one score a class",
                where=f"node '{self.outputs[0]}'",
                hint=f"pass {option('output_layer')} if another gives such; live shows boxes and masks",
            )
        return scores.reshape(-1)

    def label(self, path: str | os.PathLike[str], top: int = 5) -> list[Prediction]:
        """The ``top`` classes with the highest scores, best first; of equal ones the lower index comes first.

        Raises:
            FormatError, RunError: as in ``scores``.
        """
        return self.best(self.scores(path), top)

    def best(self, scores: np.ndarray[Any, Any], top: int) -> list[Prediction]:
        """The ``top`` highest of these scores, as ``label`` orders them."""
        best = best_classes(scores, self.labels, top, is_logit=self.gives_logits)
        return [Prediction(at, class_name(self.labels, at), score) for at, score in best]


def without_names() -> str:
    """What a caller is told who gave no labels to a model whose file has none."""
    return f"nothing names the classes, so they are numbers; {option('labels')} names a file with one a line"


def mismatch(labels: Iterable[str], scores: int) -> str:
    """A warning when a labels file has not one line for each score, or two for a score of two classes; else empty."""
    lines = len(list(labels))
    if lines in (0, scores) or (lines, scores) == (2, 1):
        return ""
    has = f"the labels file has {counted(lines, 'line')} and the output {counted(scores, 'score')}"
    return f"{has}: they may not belong together"
