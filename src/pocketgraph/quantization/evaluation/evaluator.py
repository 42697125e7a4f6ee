"""The public door of evaluation: models and samples in, figures out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pocketgraph.datasets.class_labels import read_labels, two_classes
from pocketgraph.datasets.evaluation_dataset import Dataset
from pocketgraph.datasets.file_lists import check_is_there
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.named_arrays import SampleSource, are_arrays
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.datasets.sample_reading import Notify, SampleReading, takes_gaps, unheard
from pocketgraph.errors import UsageError, option, path_of
from pocketgraph.formats import load
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.freezing.ready_models import refuse_signature_of_none, signature_for
from pocketgraph.graph import Graph
from pocketgraph.passes.training_switches import switches_note
from pocketgraph.quantization.class_names import own_names_of
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.evaluation.labelled_output import judge_by_labelled
from pocketgraph.quantization.evaluation.model_evaluation import Evaluation, check_inputs, judge_models, largest_inputs
from pocketgraph.quantization.evaluation.runnable_models import (
    GraphModel,
    LiteRTModel,
    QuantizedBytes,
    RunnableModel,
    check_feeds,
    is_litert,
    open_model,
)
from pocketgraph.quantization.evaluation.scaling_trial import MOST_TRIED, better_scaling
from pocketgraph.quantization.evaluation.text_models import with_texts
from pocketgraph.quantization.ranges.trained_ranges import collapsed_ranges_note
from pocketgraph.quantization.stated_sizes import Sizes, by_tensor
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy
from pocketgraph.runtime.random_answers import random_note

DOUBTFUL = 0.9  # of the answers right: fewer, and pictures may be scaled otherwise than in training
PATHS = (str, os.PathLike)
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
    signature: str | None = None,
    shapes: Sizes | None = None,
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
    """Judges models on the same samples by their first output, or where the first model has several by the one that
    the samples' classes or numbers are of.

    Where the samples tell classes: the share of right answers; where they tell numbers: the mean error. For all but the
    first model: how far its answers are from those of the first.

    Args:
        models: graphs, paths (of graphs, of directories, of LiteRT files), and what ``pocketgraph.quantize`` gave.
        outputs: of graphs; models are judged by the first.
        samples, labels, inputs, feeds, signature, shapes, threads, progress, notify: as for
            ``pocketgraph.quantize``.
        limit: judge on the first so many samples only.
        skip: leave out the first so many, such as those calibrated with.
        preset, input_mean, input_std, input_width, input_height, sample_rate: see ``SampleReading``.

    Returns:
        A row for each model, in their order; it prints as a table.

    Raises:
        UsageError: there are no samples, or models do not take or give the same shapes.
        FormatError: a file is damaged.
    """
    reading = SampleReading(preset, input_mean, input_std, input_width, input_height, sample_rate, notify or unheard)
    options = EvaluationOptions(
        reading, labels, limit, skip, outputs, inputs, feeds, signature, shapes, threads, progress or silent
    )
    given = _listed(models)
    found = evaluate_with(options, given, samples)
    first = found[0].accuracy
    if found.has_unsaid_scaling and first is not None and first.top1 < DOUBTFUL:
        fewer = replace(options, limit=min(limit or MOST_TRIED, MOST_TRIED), progress=silent)

        def judged(mean: float, std: float) -> ClassAccuracy | None:
            scaled = replace(reading, input_mean=mean, input_std=std, notify=unheard)
            return evaluate_with(replace(fewer, reading=scaled), given[:1], samples)[0].accuracy

        better = better_scaling(judged)
        if better is not None:
            found.notes.append(f"is the scaling right? Try {better.words()}")
    return found


@dataclass(frozen=True)
class EvaluationOptions:
    """The arguments of ``evaluate`` but for models and samples.

    Attributes:
        reading: how the samples are read.
        is_labelled: False where the output that comes first is another than the data's classes or numbers are of.
        labels, limit, skip, outputs, inputs, feeds, signature, shapes, threads, progress: as there.
    """

    reading: SampleReading
    labels: str | os.PathLike[str] | Sequence[str] | None = None
    limit: int | None = None
    skip: int = 0
    outputs: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    feeds: Mapping[str, Any] | None = None
    signature: str | None = None
    shapes: Sizes | None = None
    threads: int = 1
    progress: Progress = silent
    is_labelled: bool = True


def evaluate_with(
    options: EvaluationOptions, models: Evaluated | Sequence[Evaluated], samples: SampleSource
) -> Evaluation:
    """``evaluate`` without a look at other scalings of pictures than that of the options' reading, or the usual one."""
    given = _listed(models)
    if not given:
        raise UsageError("no model is given", hint="evaluate(model, samples), or a list of models")
    check_is_there(samples)
    labels, reading, outputs = options.labels, options.reading, options.outputs
    known = read_labels(labels) if isinstance(labels, (str, os.PathLike)) else labels
    opened = _opened(options, given, samples)
    graphs = [model for model in opened if isinstance(model, GraphModel)]
    judged = with_texts(opened)
    _check_said(options, graphs)
    check_inputs(judged)
    data, taken = _read(options, given, opened, judged, samples)
    if options.is_labelled and not outputs:
        judge_by_labelled(opened, judged[0], data, known, reading.notify)
    if known is None and options.is_labelled:
        known = _own_names(given[0], opened[0], data, options.signature, reading.notify)
    pair = two_classes(data.classes, known) if options.is_labelled else None  # of all: a few may be of one class
    data = data if options.is_labelled else replace(data, targets=None, classes=[])
    data = data.after(options.skip) if options.skip else data
    data = data.take(options.limit) if options.limit else data
    reading.mention(data)
    found = judge_models(judged, data, known, options.progress, pair)
    found.notes += dict.fromkeys(
        filter(None, (random_note(model.graph, model.outputs, model.values) for model in graphs))
    )
    is_float = taken[0].dtype.kind == "f"
    found.has_unsaid_scaling = data.are_pictures and is_float and data.scaling.mean is data.scaling.std is None
    return found


def _opened(options: EvaluationOptions, given: Sequence[Evaluated], samples: SampleSource) -> list[RunnableModel]:
    """The models, ready to run; LiteRT files give what the first graph gives first."""
    reading, outputs, threads = options.reading, options.outputs, options.threads
    refuse_signature_of_none(options.signature, given)
    litert = {
        at: LiteRTModel(model, threads, outputs)
        for at, model in enumerate(given)
        if not isinstance(model, Graph) and is_litert(model)
    }
    sizes = [model.inputs[0].shape for model in litert.values() if len(model.inputs) == 1]
    opened = [
        litert.get(at) or
        open_model(
            model, outputs=outputs, inputs=options.inputs, values=options.feeds, threads=threads,
            sizes=lambda graph, shapes: reading.sized(graph, shapes, samples, sizes),
            signature=signature_for(model, options.signature),
            notify=reading.notify, shapes=options.shapes,
        )
        for at, model in enumerate(given)
    ]  # fmt: skip
    first = next((model for model in opened if isinstance(model, GraphModel)), None)
    if first is not None and not outputs and len(first.outputs) > 1:
        for model in litert.values():
            model.give_first(first.outputs)
    return opened


def _check_said(options: EvaluationOptions, graphs: Sequence[GraphModel]) -> None:
    """Refuses feeds and sizes of no input of the graphs; tells how switches are set, and of ranges that collapsed."""
    whole = [model.graph for model in graphs]
    check_feeds(options.feeds or {}, whole)
    shapes = options.shapes or {}
    said = (name for name in filter(None, shapes) if all(name in by_tensor(own, {name: ()}) for own in whole))
    check_feeds(said, whole, option("input_shape", "shapes"))
    if shapes and not graphs:
        raise UsageError(f"{option('input_shape', 'shapes')} is for graphs; a .tflite file has sizes of its own")
    if graphs and graphs[0].switches:
        options.reading.notify(switches_note(graphs[0].switches))
    for note in dict.fromkeys(filter(None, map(collapsed_ranges_note, whole))):
        options.reading.notify(note)


def _read(
    options: EvaluationOptions, given: Sequence[Evaluated], opened: Sequence[RunnableModel],
    judged: Sequence[RunnableModel], samples: SampleSource,
) -> tuple[Dataset, Sequence[ModelInput]]:  # fmt: skip
    """The samples as these models take them, and what they take."""
    reading, is_stored = options.reading, not are_arrays(samples)
    graphs = [model for model in opened if isinstance(model, GraphModel)]
    files = [(one, model.path) for one, model in zip(given, opened, strict=True) if isinstance(model, LiteRTModel)]
    is_unsaid = reading.preset is None and reading.input_mean is None and reading.input_std is None
    if is_unsaid and not graphs and is_stored:
        reading = _as_file_says([path for one, path in files if isinstance(one, PATHS)], reading)
    taken = largest_inputs(judged)
    if is_stored and not taken[0].rate:
        taken = _with_rate(taken, graphs, [path for one, path in files if not isinstance(one, QuantizedBytes)])
    shown = graphs[0].graph if graphs and is_stored else None
    audio = graphs[0].audio if graphs else None
    has_gaps = any(takes_gaps(model.graph) for model in graphs)
    scaling = reading.scaling(shown, options.inputs or ())
    return reading.open(samples, taken, scaling, audio, has_gaps=has_gaps), taken


def _listed(models: Evaluated | Sequence[Evaluated]) -> list[Evaluated]:
    if isinstance(models, (Graph, QuantizedBytes)):
        return [models]
    given: list[Any] = [models]
    if isinstance(models, Iterable) and not isinstance(models, (*PATHS, bytes, Mapping)):
        given = list(models)
    return [one if isinstance(one, (Graph, QuantizedBytes)) else path_of(one) for one in given]


def _own_names(
    given: Evaluated, model: RunnableModel, data: Dataset, signature: str | None, notify: Notify
) -> Sequence[str] | None:
    """The names of classes that the first model has itself."""
    if isinstance(model, GraphModel):
        return own_names_of(given if isinstance(given, PATHS) else model.graph, model.graph, model.outputs[0], data,
                            signature, notify)  # fmt: skip
    if isinstance(model, LiteRTModel) and data.classes:
        graph = model.as_graph()
        place = given if isinstance(given, PATHS) else graph
        return own_names_of(place, graph, graph.outputs[0], data, None, notify) if graph.outputs else None
    return None


def _with_rate(
    taken: Sequence[ModelInput], graphs: Sequence[GraphModel], files: Sequence[str]
) -> tuple[ModelInput, ...]:
    """Inputs that do not say how many samples a second they hear, as another model or what is in a file says it."""
    rates = (
        *(item.rate for model in graphs for item in model.inputs),
        *(model_sample_rate(load(path)) for path in files),
    )
    return tuple(replace(item, rate=next(filter(None, rates), None)) for item in taken)


def _as_file_says(paths: Sequence[str], reading: SampleReading) -> SampleReading:
    """How samples are read, pictures scaled as the metadata or the codes of the first of LiteRT files say."""
    if not paths:
        return reading
    graph = load(paths[0])
    about = metadata(graph.extra)
    if about is not None and about.scaling is not None:
        mean, std = about.scaling
        return replace(reading, input_mean=mean, input_std=std)
    scaling = reading.scaling(graph)
    return replace(reading, input_mean=scaling.mean, input_std=scaling.std)
