"""The scaling of pictures that a model was trained with, found by which makes most of its answers right."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pocketgraph.datasets.file_sizes import are_pictures
from pocketgraph.datasets.inferred_scaling import inferred_scaling
from pocketgraph.datasets.picture_input import find_input
from pocketgraph.datasets.sample_reading import Notify, SampleReading
from pocketgraph.errors import PocketgraphError, option
from pocketgraph.graph import Graph
from pocketgraph.quantization.evaluation.evaluator import EvaluationOptions, evaluate_with
from pocketgraph.quantization.evaluation.model_evaluation import Evaluation
from pocketgraph.quantization.evaluation.scaling_trial import MOST_TRIED, better_scaling
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy
from pocketgraph.transforms import transform


def with_scaling_told(frozen: Graph, whole: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> Graph:
    """The folded model, with the node in front of the first layer that tells how pixels are scaled, where folding took
    it in: who reads pictures for the file needs no options then."""
    told = SampleReading().scaling(whole)
    if told.mean is None or SampleReading().scaling(frozen) == told:
        return frozen
    found = inferred_scaling(whole, find_input(whole))
    if found is None:
        return frozen
    telling = transform(whole, "mobile", inputs, [*outputs, found.node]).replace(outputs=frozen.outputs)
    return telling if SampleReading().scaling(telling) == told else frozen


def unsaid_scaling(found: Evaluation) -> list[str]:
    """That nothing told how pictures are scaled, and how they were fed, where no right answers speak for that."""
    if not found.has_unsaid_scaling or found[0].accuracy is not None:
        return []
    said = f"{option('input_mean')}=127.5 {option('input_std')}=127.5"
    return [f"how pixels were scaled in training: values from 0 to 1 were fed; {said} feeds those from -1 to 1"]


def likeliest_scaling(
    graph: Graph,
    whole: Graph,
    data: str | os.PathLike[str] | None,
    calibrated: int,
    reading: Mapping[str, Any],
    notify: Notify,
    *,
    labels: str | os.PathLike[str] | None,
    outputs: Sequence[str],
    threads: int,
) -> dict[str, Any]:
    """How data are read: with the scaling of pictures that the caller or the model says, else with the one that makes
    most answers right, where the data tell what is right; else as before.

    Args:
        graph: the frozen model, stripped and folded.
        whole: the same before that; a product in front of its first layer tells a scaling that is folded away.
        data: a folder of pictures; with others nothing is tried.
        calibrated: how many samples may be looked at: those that calibrate, so that those that judge stay unseen.
        reading: the arguments of ``SampleReading`` as they are given.
        notify: is told of a scaling that was chosen.
        labels, outputs, threads: as for ``evaluate``.
    """
    found = dict(reading)
    is_said = any(found[name] is not None for name in ("preset", "input_mean", "input_std"))
    if is_said:
        return found
    told = SampleReading().scaling(whole)
    if told.mean is not None and SampleReading().scaling(graph) != told:
        SampleReading(notify=notify).scaling(whole)
        return found | {"input_mean": told.mean, "input_std": told.std}
    if data is None or not are_pictures(data) or told.mean is not None:
        return found

    def judged(mean: float, std: float) -> ClassAccuracy | None:
        scaled = SampleReading(**{**found, "input_mean": mean, "input_std": std})
        tried = max(1, min(calibrated, MOST_TRIED))
        options = EvaluationOptions(scaled, labels, tried, outputs=outputs, threads=threads)
        return evaluate_with(options, graph, data)[0].accuracy

    try:
        better = better_scaling(judged)
    except PocketgraphError:
        return found  # what is wrong is said where the data are read in earnest
    if better is not None:
        found.update(input_mean=better.mean, input_std=better.std)
        notify(f"pictures are scaled with {better.words()}")
    return found
