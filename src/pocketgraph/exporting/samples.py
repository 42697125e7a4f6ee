"""Inputs for an export: the caller's samples, fed as ``quantize`` and ``evaluate`` feed them, and made-up ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pocketgraph.datasets.evaluation_dataset import DEFAULT_MEAN, DEFAULT_STD, Dataset
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.named_arrays import SampleSource, are_arrays, fitting_signature
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import FormatError, RunError
from pocketgraph.exporting.entry_sizes import with_sizes
from pocketgraph.exporting.model import EntryPoint, ExportModel, Feeds, Normalization, Port
from pocketgraph.graph import DType
from pocketgraph.graph.model_file_graph import has_codes
from pocketgraph.graph.op_traits import FUNCTION_CALLS
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.text_preprocessing import TextPreprocessing
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.compare import plain_values, plainer
from pocketgraph.runtime.execution import STEP_LIMIT
from pocketgraph.runtime.feeding.synthetic_feeds import random_values
from pocketgraph.runtime.unrolling.constant_trip_counts import constant_trip_counts

MOST_STEPS = 1_000_000
"""Nodes that a run with made-up inputs may take inside of loops, which may have no end with these: some seconds."""


def step_limit(model: ExportModel) -> int:
    """How many nodes a run may take inside of loops: fewer with made-up inputs, unless no input decides."""
    loops = {node.name for node in model.graph if node.op == "LoopCond" or node.op in FUNCTION_CALLS}
    is_safe = model.samples is not None or loops <= constant_trip_counts(model.graph).keys()
    return STEP_LIMIT if is_safe else MOST_STEPS


def with_samples(model: ExportModel, source: SampleSource | None, reading: SampleReading, limit: int) -> ExportModel:
    """The model with samples of its main entry point, with how its pictures are normalized, and with the rate at which
    its recordings are heard.

    Of several entry points, the one whose inputs are named like the samples' arrays becomes the main one.

    Args:
        model: the model; sizes that it leaves open become those of the samples.
        source: where the samples are (see ``open_dataset``); None for none.
        reading: how they are read.
        limit: how many of them to take.

    Raises:
        UsageError: there are none, or they do not fit.
        FormatError: a file is damaged.
    """
    has_pictures = source is None or not are_arrays(source)
    scaling = reading.scaling(model.graph if has_pictures else None, [port.tensor for port in model.main.inputs])
    shapes = {port.tensor: port.sizes or () for port in model.main.inputs}
    if source is None:
        if reading.has_size and [(port.shape or ())[1:].count(None) for port in model.main.inputs] == [2]:
            model = with_sizes(model, reading.sized(model.graph, shapes, None))
        return replace(model, normalization=_normalization(model, scaling, is_fed=False))
    fitting = fitting_signature(source, {entry.name: [port.name for port in entry.inputs] for entry in model.entries})
    if fitting is not None and len(model.entries) > 1:
        model = replace(model, entries=tuple(sorted(model.entries, key=lambda entry: entry.name != fitting)))
    if model.texts is not None:
        return _with_texts(model, model.texts, source, reading, limit)
    if model.front is None:
        shapes = {port.tensor: port.sizes or () for port in model.main.inputs}
        model = with_sizes(model, reading.sized(model.graph, shapes, source))
    ports = model.main.inputs
    rate = model_sample_rate(model.graph)
    inputs = tuple(
        ModelInput(port.name, port.sizes or (), np.dtype(port.dtype.numpy), rate=rate, keys=(port.tensor,))
        for port in ports
    )
    data = reading.open(source, inputs, scaling, model.front).take(limit)
    reading.mention(data)

    normalization = _normalization(model, scaling, is_fed=bool(data.files))
    return replace(
        model, samples=partial(_feeds, data, ports), sample_count=len(data), normalization=normalization,
        sample_rate=data.rate if data.are_recordings and model.front is None else None,
    )  # fmt: skip


def _feeds(data: Dataset, ports: Sequence[Port]) -> Iterator[Feeds]:
    for arrays in data.samples():
        yield {port.name: array for port, array in zip(ports, arrays, strict=True)}


def _with_texts(
    model: ExportModel, texts: TextPreprocessing, source: SampleSource, reading: SampleReading, limit: int
) -> ExportModel:  # fmt: skip
    """The model with what it is given for texts, of the lengths that were chosen."""
    model = with_sizes(model, texts.shapes)
    data = reading.open(source, texts.inputs, PictureScaling()).take(limit)
    data.behind_texts = texts
    ports = model.main.inputs

    return replace(model, samples=partial(_feeds, data, ports), sample_count=len(data))


def _normalization(model: ExportModel, scaling: PictureScaling, *, is_fed: bool) -> Normalization | None:
    """How pictures in the first input are normalized: as was said, or as those of the samples were."""
    port = model.main.inputs[0] if model.main.inputs else None
    sizes = port.sizes if port is not None else None
    if port is None or sizes is None or len(sizes) != 4 or sizes[3] not in (1, 3):
        return None
    if port.dtype.name != "float" and not has_codes(model.graph, port.tensor):
        return None
    mean, std = scaling.mean, scaling.std
    if mean is None and std is None and not is_fed:
        return None
    mean, std = DEFAULT_MEAN if mean is None else mean, DEFAULT_STD if std is None else std
    return Normalization(*(part if isinstance(part, tuple) else (float(part),) for part in (mean, std)))


def made_feeds(entry: EntryPoint, *, plain: bool = False) -> dict[str, Array]:
    """One set of made-up inputs, always the same; see runtime.feeding.synthetic_feeds.synthetic_feeds.

    Args:
        entry: what they go into.
        plain: ones and words instead of random numbers and empty texts.
    """
    rng = np.random.default_rng(0)
    made = {port.name: random_values(port.dtype, port.sizes or (), rng, port.name) for port in entry.inputs}
    return {name: plain_values(value) for name, value in made.items()} if plain else made


def main_feeds(model: ExportModel) -> dict[str, Array]:
    """One set of made-up inputs of the main entry point; behind what makes a spectrum, that of a made-up recording.

    Drawn numbers are no spectrum: magnitudes are not negative, and the logarithm of others is NaN in every engine.
    """
    made = made_feeds(model.main)
    if model.texts is None or model.texts.takes_texts:
        return made
    rng = np.random.default_rng(0)
    drawn = [random_values(DType.of_numpy(item.dtype), item.shape, rng, item.name) for item in model.texts.inputs]
    try:
        spectra = dict(zip(made, model.texts(drawn), strict=True))
    except FormatError:
        return made
    return spectra if all(spectra[name].shape == made[name].shape for name in made) else made


def taken_feeds(model: ExportModel) -> dict[str, Array]:
    """One set of inputs that the main entry point takes: the first sample, else a made-up one.

    Whole numbers may be too large, as for the rows of a table: where the model refuses what was drawn, all are ones,
    or zeros.
    """
    if model.samples is not None:
        return dict(next(iter(model.samples())))
    entry = model.main
    made = main_feeds(model)
    if all(port.dtype.is_floating for port in entry.inputs):
        return made
    ones, zeros = plainer(made)
    with Session(model.graph, model.threads, step_limit=step_limit(model)) as session:
        for feeds in (made, ones, zeros):
            with contextlib.suppress(RunError):
                entry.run(session, feeds)
                return feeds
    return ones
