"""What a shipped file says of itself: how pictures are normalized, and what its classes are called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pocketgraph.datasets.file_sizes import are_pictures
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import UsageError
from pocketgraph.exporting.tflite.metadata import described
from pocketgraph.exporting.tool import model_to_export
from pocketgraph.graph import Graph
from pocketgraph.quantization.text_inputs import text_inputs


def described_file(
    graph: Graph,
    made: Callable[[Mapping[str, bytes]], bytes],
    *,
    outputs: Sequence[str],
    labels: Sequence[str] | str | os.PathLike[str] | None,
    reading: SampleReading,
    samples: Any,
) -> bytes | None:
    """The content of a quantized file with what apps and task libraries have to know; None where that is nothing.

    Args:
        graph: what the file was made of.
        made: the file's content with named metadata in it.
        outputs: what it gives.
        labels: the names of classes, or the file with them; left out where they are not of a row of scores.
        reading: how samples are read.
        samples: where they come from; of pictures, how they are scaled is told.
    """
    if text_inputs(graph, outputs):
        return None
    is_folder = isinstance(samples, str | os.PathLike) and os.path.isdir(samples)
    pictures = samples if samples is not None and (is_folder or are_pictures(samples)) else None
    for names in (labels, ()) if labels else ((),):
        try:
            model = model_to_export(graph, reading, outputs=outputs, labels=names, samples=pictures, limit=1)
            return described(model, made)
        except UsageError:
            continue
    return None
