"""Says what is in pictures: a classifier graph, its labels, and the best scores for each picture."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pocketgraph.datasets import presets
from pocketgraph.datasets.picture_input import PictureInput, describe, find_input, require
from pocketgraph.errors import MissingKernelError, RunError, UsageError, option
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.model_file import SCALES, coded, is_litert_file, numbers
from pocketgraph.graph.order import reachable

DEFAULT_MEAN, DEFAULT_STD = 0.0, 255.0  # the original's


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


class Labeler:
    """Labels pictures with one graph.

    What is not given is taken from the preset, then from the graph itself (a LiteRT file's metadata, the size from a
    placeholder's shape, the output from the one node that nothing consumes), then from the original program's defaults
    (mean 0, std 255).

    Args:
        graph: a classifier.
        labels: one name for each score.
        preset: a name from ``presets.PRESETS``; by default the one whose layer names the graph has, provided that
            neither layer is given.
        input_layer, output_layer: node names.
        width, height: of the pictures that the graph takes, in pixels.
        mean, std: pixels from 0 to 255 are fed as ``(pixel - mean) / std``.
        feeds: values for other placeholders that the output needs, such as ``{"keep_prob": 1.0}``.
        threads: as in Session.

    Raises:
        UsageError: the graph has not these layers, takes no pictures, not pictures of this size, or needs feeds that
            are not given.
    """

    def __init__(
        self,
        graph: Graph,
        labels: Sequence[str] = (),
        *,
        preset: str | None = None,
        input_layer: str | None = None,
        output_layer: str | None = None,
        width: int | None = None,
        height: int | None = None,
        mean: float | None = None,
        std: float | None = None,
        feeds: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        from pocketgraph.runtime import Session

        if std == 0:
            raise UsageError(f"{option('input_std', 'std')} is 0; pixels are divided by it")
        chosen = presets.get(preset) if preset else None
        if chosen is None and input_layer is None and output_layer is None:
            chosen = presets.recognise(graph)
        self.preset = chosen
        told = metadata(graph.extra) if is_litert_file(graph) else None
        if told is not None:
            labels = labels or told.labels
            mean = told.mean[0] if mean is None and told.mean else mean
            std = told.std[0] if std is None and told.std else std
        self.labels = tuple(labels)
        if input_layer is None:
            input_layer = chosen.input_layer if chosen and chosen.input_layer in graph else find_input(graph)
        if output_layer is None:
            output_layer = chosen.output_layer if chosen and chosen.output_layer in graph else find_output(graph)
        self.output = canonical(require(graph, output_layer, option("output_layer")))
        require(graph, input_layer, option("input_layer"))
        self.input: PictureInput = describe(graph, input_layer, width, height, chosen.size if chosen else None)
        if is_litert_file(graph) and SCALES in graph[input_layer].attrs:
            self.input = replace(self.input, dtype=FLOAT)  # codes are made of the scaled picture
        self.mean = mean if mean is not None else chosen.mean if chosen else DEFAULT_MEAN
        self.std = std if std is not None else chosen.std if chosen else DEFAULT_STD
        self.feeds = {
            canonical(require(graph, name, option("feed", "feeds"))): value for name, value in (feeds or {}).items()
        }
        require_feeds(graph, self.output, (self.input.tensor, *self.feeds))
        self._session = Session(graph, threads=threads)

    def scores(self, path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
        """The graph's scores for the picture in a file, a float array with one entry a class.

        Raises:
            FormatError: the file is no picture.
            RunError: the graph cannot run, or its output is not one score a class.
        """
        feed = self.input.feed(os.fspath(path), self.mean, self.std)
        try:
            graph = self._session.graph
            feed = coded(graph, self.input.tensor, feed)
            (result,) = self._session.run([self.output], {self.input.tensor: feed, **self.feeds})
            result = numbers(graph, self.output, result)
        except MissingKernelError:
            raise
        except RunError as error:
            if not self.input.guessed:
                raise
            size = f"{self.input.width} x {self.input.height}"
            hint = (
                f"the size {size} is a guess: pass {option('input_width', 'width')} and "
                f"{option('input_height', 'height')} if the graph takes another"
            )
            raise RunError(error.what, where=error.where, hint=hint) from error
        scores = np.asarray(result)
        if self.input.batch > 1 and scores.ndim > 0 and scores.shape[0] == self.input.batch:
            scores = scores[0]
        if scores.size == 0 or scores.size != max(scores.shape, default=0) or scores.dtype.kind != "f":
            raise RunError(
                f"the output is {scores.dtype}{list(scores.shape)}, not one score a class",
                where=f"node '{self.output}'",
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


def find_output(graph: Graph) -> str:
    """The name of the node that gives the scores: the one that nothing consumes, a Softmax where there are several.

    Raises:
        UsageError: that does not decide it.
    """
    from pocketgraph.inspect import summarize

    sinks = summarize(graph).sinks
    for group in (sinks, [node for node in sinks if node.op == "Softmax"]):
        if len(group) == 1:
            return group[0].name
    if not sinks:
        raise UsageError("nothing in this graph looks like an output", hint=f"pass {option('output_layer')}")
    shown = ", ".join(node.name for node in sinks[:5]) + (", …" if len(sinks) > 5 else "")
    raise UsageError(f"{len(sinks)} nodes may be the output ({shown})", hint=f"pass {option('output_layer')}")


def require_feeds(graph: Graph, output: str, fed: Collection[str]) -> None:
    """Raises UsageError when ``output`` needs a placeholder that is not fed."""
    names = {node_name(tensor) for tensor in fed}
    needed = reachable(graph, [output], stop=names) - names
    missing = [node.name for node in graph if node.name in needed and node.op in ("Placeholder", "PlaceholderV2")]
    if missing:
        flags = " ".join(f"{option('feed', 'feeds')} {name}=VALUE" for name in missing[:5])
        raise UsageError(f"'{node_name(output)}' needs more than a picture", hint=f"pass {flags}")


def mismatch(labels: Iterable[str], scores: int) -> str:
    """A warning when a labels file has not one line for each score; else empty."""
    lines = len(list(labels))
    if lines in (0, scores):
        return ""
    return f"the labels file has {lines} lines and the output {scores} scores: they may not belong together"
