"""The scaling of pictures that a model was trained with, found by which makes most of its answers right."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pocketgraph.datasets.sample_reading import Notify, SampleReading
from pocketgraph.errors import PocketgraphError, option
from pocketgraph.graph import Graph
from pocketgraph.quantization import evaluate
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy

SCALINGS = ((0.0, 255.0), (127.5, 127.5), (0.0, 1.0))
"""Mean and deviation of pixels that networks are mostly trained with, the usual ones first."""
MOST_TRIED = 60  # samples for each of these


def likeliest_scaling(
    graph: Graph,
    data: str | os.PathLike[str] | None,
    calibrated: int,
    reading: Mapping[str, Any],
    notify: Notify,
    *,
    labels: str | os.PathLike[str] | None,
    outputs: Sequence[str],
    threads: int,
) -> dict[str, Any]:
    """How data are read, with the scaling of pictures that makes most answers right, where neither the caller nor the
    graph says one and the data tell what is right; else as before.

    Args:
        graph: the frozen model.
        data: a folder of pictures; with others nothing is tried.
        calibrated: how many samples may be looked at: those that calibrate, so that those that judge stay unseen.
        reading: the arguments of ``SampleReading`` as they are given.
        notify: is told of a scaling that was chosen.
        labels, outputs, threads: as for ``evaluate``.
    """
    found = dict(reading)
    is_said = any(found[name] is not None for name in ("preset", "input_mean", "input_std"))
    if is_said or data is None or not os.path.isdir(data) or SampleReading().scaling(graph).mean is not None:
        return found
    right: dict[tuple[float, float], ClassAccuracy] = {}
    for mean, std in SCALINGS:
        try:
            accuracy = evaluate(
                graph, data, labels=labels, outputs=outputs, threads=threads,
                limit=max(1, min(calibrated, MOST_TRIED)), **{**found, "input_mean": mean, "input_std": std},
            )[0].accuracy  # fmt: skip
        except PocketgraphError:
            return found  # what is wrong is said where the data are read in earnest
        if accuracy is None:
            return found
        right[mean, std] = accuracy
    usual, best = right[SCALINGS[0]], max(right, key=lambda scaling: right[scaling].first)
    if right[best].top1_interval[0] > usual.top1:
        found.update(input_mean=best[0], input_std=best[1])
        notify(
            f"pictures are scaled with {option('input_mean')}={best[0]:g} {option('input_std')}={best[1]:g}: "
            f"{right[best].top1:.0%} of {usual.count} answers are right so, and {usual.top1:.0%} with 0 and 255"
        )
    return found
