"""The public door of evaluation: models and samples in, figures out."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.datasets.dataset import Dataset
from pocketgraph.datasets.named_arrays import SampleSource, are_arrays
from pocketgraph.datasets.sample_reading import Notify, SampleReading, unheard
from pocketgraph.errors import option
from pocketgraph.graph import Graph
from pocketgraph.quantization.core.quantization_options import Progress
from pocketgraph.quantization.evaluation.model_evaluation import Evaluation, Verdict, judge_models, largest_inputs
from pocketgraph.quantization.evaluation.runnable_models import (
    GraphModel,
    LiteRTModel,
    QuantizedBytes,
    check_feeds,
    is_litert,
    open_model,
)

Evaluated = Graph | QuantizedBytes | str | os.PathLike[str]


def evaluate(
    models: Evaluated | Sequence[Evaluated],
    samples: SampleSource,
    *,
    labels: str | os.PathLike[str] | Sequence[str] | None = None,
    limit: int | None = None,
    skip: int = 0,
    outputs: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    feeds: Mapping[str, Any] | None = None,
    preset: str | None = None,
    input_mean: float | None = None,
    input_std: float | None = None,
    input_width: int | None = None,
    input_height: int | None = None,
    sample_rate: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> Evaluation:
    """Judges models by their first output on the same samples.

    Where the samples tell classes: the share of right answers; where they tell numbers: the mean error. For all but the
    first model: how far its answers are from those of the first.

    Args:
        models: graphs, paths (of graphs, of directories, of LiteRT files), and what ``pocketgraph.quantize`` gave.
        samples, labels, outputs, inputs, feeds, threads, progress, notify: as for ``pocketgraph.quantize``.
        limit: judge on the first so many samples only.
        skip: leave out the first so many, such as those calibrated with.
        preset, input_mean, input_std, input_width, input_height, sample_rate: see ``SampleReading``.

    Raises:
        UsageError: there are no samples, or models do not take or give the same shapes.
        FormatError: a file is damaged.
    """
    given = [models] if isinstance(models, (Graph, QuantizedBytes, str, os.PathLike)) else list(models)
    reading = SampleReading(preset, input_mean, input_std, input_width, input_height, sample_rate, notify or unheard)
    litert = {
        at: LiteRTModel(model, threads, outputs)
        for at, model in enumerate(given)
        if not isinstance(model, Graph) and is_litert(model)
    }
    taken = [model.inputs[0].shape for model in litert.values() if len(model.inputs) == 1]
    opened = [
        litert.get(at) or
        open_model(
            model, outputs=outputs, inputs=inputs, values=feeds, threads=threads,
            sizes=lambda graph, shapes: reading.sized(graph, shapes, samples, taken),
        )
        for at, model in enumerate(given)
    ]  # fmt: skip
    graphs = [model for model in opened if isinstance(model, GraphModel)]
    check_feeds(feeds or {}, [model.graph for model in graphs])
    shown = graphs[0].graph if graphs and not are_arrays(samples) else None
    audio = graphs[0].audio if graphs else None
    data = reading.open(samples, largest_inputs(opened), reading.scaling(shown), audio)
    data = data.after(skip) if skip else data
    data = data.take(limit) if limit else data
    reading.mention(data)
    known = read_labels(labels) if isinstance(labels, (str, os.PathLike)) else labels
    odd: list[int] = []
    verdicts = judge_models(
        opened,
        lambda: _watched(data.samples(), odd),
        len(data),
        lambda scores: data.truth(known, scores),
        progress,
        data.wanted,
    )
    return Evaluation(verdicts, len(data), list(notes(verdicts, data, odd)))


def _watched(samples: Iterator[list[Any]], odd: list[int]) -> Iterator[list[Any]]:
    """The samples; ``odd`` gets the numbers, from 1 on, of those that hold other than finite numbers."""
    for number, sample in enumerate(samples, 1):
        if not all(np.isfinite(array).all() for array in sample if array.dtype.kind == "f"):
            odd.append(number)
        yield sample


def notes(verdicts: list[Verdict], data: Dataset, odd: list[int]) -> Iterator[str]:
    """What the numbers do not say by themselves."""
    if odd:
        which = f"sample {odd[0]} holds" if len(odd) == 1 else f"{len(odd)} samples hold, the first being {odd[0]},"
        yield f"{which} NaN or infinity; take such out of {data.place}"
    if data.classes and all(verdict.accuracy is None and verdict.errors is None for verdict in verdicts):
        yield (
            f"{data.place} tells classes, such as '{data.classes[0]}', but not which score is whose; "
            f"{option('labels')} names the class of each score"
        )
    compared = [verdict.comparison for verdict in verdicts if verdict.comparison is not None]
    if not all(math.isfinite(comparison.mean_error) for comparison in compared):
        yield f"some results are not finite numbers; look for NaN and infinities in {data.place}"
