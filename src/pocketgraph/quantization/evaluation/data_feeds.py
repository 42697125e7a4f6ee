"""Feeds for a model, a set a sample: pictures, recordings, tables and arrays, read as ``evaluate`` reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.datasets.named_arrays import SampleSource, are_arrays
from pocketgraph.datasets.recordings import USUAL_RATE, content_at
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.model_file_graph import numbers
from pocketgraph.quantization.audio_preprocessing import audio_preprocessing_of, input_shapes
from pocketgraph.quantization.evaluation.runnable_models import check_feeds
from pocketgraph.quantization.text_inputs import model_input
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.tensor_names import feed_endpoints


def data_feeds(
    graph: Graph,
    samples: SampleSource,
    reading: SampleReading,
    *,
    outputs: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    values: Mapping[str, Any] | None = None,
    limit: int | None = None,
    reads_recordings: bool = True,
) -> list[dict[str, np.ndarray[Any, Any]]]:
    """A set of feeds for each sample, numbers where a file takes quantized values.

    Args:
        graph: the model.
        samples: see ``open_dataset``.
        reading: how they are scaled and sized.
        outputs, inputs: what is to be computed and fed; by default the model's own.
        values: what other placeholders are fed with.
        limit: take the first so many only.
        reads_recordings: whether a graph that reads recordings by itself gets those, and not what it makes of them.

    Raises:
        UsageError: there are no samples, or they do not fit the model.
        FormatError: a file is damaged.
    """
    check_feeds(values or {}, [graph])
    fed = {canonical(name): np.asarray(value) for name, value in (values or {}).items()}
    wanted = list(outputs) if outputs else list(default_fetches(graph))
    audio = None if inputs else audio_preprocessing_of(graph, wanted, tuple(fed))
    if audio is not None:
        shapes = dict(audio.shapes)
    else:
        shapes = reading.sized(graph, input_shapes(graph, wanted, inputs or (), tuple(fed)), samples)
    taken = tuple(
        model_input(graph, label, shapes[label], _dtype(graph, label, FeedSpec.of(graph, endpoint, label).numpy))
        for endpoint, label in feed_endpoints(graph, shapes).items()
    )
    data = reading.open(samples, taken, reading.scaling(None if are_arrays(samples) else graph, inputs or ()), audio)
    data = data.take(limit) if limit else data
    reading.mention(data)
    if audio is not None and data.files and reads_recordings:
        rate = data.rate or USUAL_RATE
        return [{audio.source: np.array(content_at(path, rate), object), **fed} for path in data.files]
    return [
        {**{item.name: array for item, array in zip(taken, sample, strict=True)}, **fed} for sample in data.samples()
    ]


def _dtype(graph: Graph, label: str, declared: np.dtype[Any] | None) -> np.dtype[Any]:
    dtype: np.dtype[Any] = numbers(graph, label, np.zeros(1, declared or np.float32)).dtype
    return dtype
