"""Says what is in pictures: a classifier graph, its labels, and the best scores for each picture."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.errors import RunError, option
from pocketgraph.graph import Graph


@dataclass(frozen=True)
class Prediction:
    """One answer for one picture.

    Attributes:
        index: which of the output's scores this is.
        label: its line of the labels file, or ``index N`` where the file has no such line.
        score: as the graph gave it.
    """

    index: int
    label: str
    score: float

    def __str__(self) -> str:
        """As the original C++ program prints it: ``military uniform (653): 0.834305``."""
        return f"{self.label} ({self.index}): {self.score:g}"


class Labeler(PictureModel):
    """Labels pictures with one graph.

    Args:
        graph: a classifier.
        labels: one name for each score; by default those that a LiteRT file holds.
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
        self.labels = tuple(labels) or (self.told.labels if self.told else ())

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
                hint=f"pass {option('output_layer')}",
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
        order = np.argsort(-scores.astype(np.float64), kind="stable")[:top]
        return [Prediction(int(i), self.name(int(i)), float(scores[i])) for i in order]

    def name(self, index: int) -> str:
        """The label of a class."""
        return self.labels[index] if index < len(self.labels) else f"index {index}"


def mismatch(labels: Iterable[str], scores: int) -> str:
    """A warning when a labels file has not one line for each score; else empty."""
    lines = len(list(labels))
    if lines in (0, scores):
        return ""
    return f"the labels file has {lines} lines and the output {scores} scores: they may not belong together"
