"""Makes a project: opens the model, finds out what it takes and gives, and has its kind write the files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pocketgraph.apps.projects.app_names import app_name
from pocketgraph.apps.projects.kinds import ProjectKind, kind_of
from pocketgraph.apps.projects.project import CODED_TOLERANCE, TOLERANCE, PictureFacts, Project, unproven
from pocketgraph.apps.projects.project_source import as_it_is, engine_of, graph_beside, project_source, with_labels
from pocketgraph.apps.projects.scores import gives_scores, is_share_of_two, scores_first
from pocketgraph.apps.projects.sound import front_beside, sound_in_a_row, sound_of
from pocketgraph.apps.shipping.detection_heads import outputs_before_selection
from pocketgraph.apps.shipping.shipment import frozen_of, takes_recordings
from pocketgraph.apps.shipping.text_steps import text_steps
from pocketgraph.apps.shipping.texts import spectrum_step
from pocketgraph.datasets.inferred_scaling import inferred_scaling
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.picture_input import layout_of
from pocketgraph.datasets.sample_reading import Notify, SampleReading, unheard
from pocketgraph.errors import (
    MissingExtraError,
    RunError,
    UsageError,
    command_on_model,
    option,
    quoted,
    shapes_option,
)
from pocketgraph.exporting.atomic_output import check_target, put_in_place, workshop
from pocketgraph.exporting.entry_sizes import as_large_as_resized, with_fixed_shapes
from pocketgraph.exporting.export_verification import COMPUTES_WITH_CODES
from pocketgraph.exporting.labels import check_labels
from pocketgraph.exporting.model import About, ExportModel, Normalization, Source, check_sizes
from pocketgraph.exporting.samples import taken_feeds
from pocketgraph.exporting.targets import TARGETS
from pocketgraph.exporting.tool import Lines, model_to_export
from pocketgraph.formats import load
from pocketgraph.freezing.ready_models import read_model
from pocketgraph.freezing.training_dir import model_path
from pocketgraph.graph import Graph
from pocketgraph.graph.model_file_graph import SCALES, coded, has_codes, is_litert_file, is_model_file
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.core.quantization_options import Progress
from pocketgraph.quantization.stated_sizes import Sizes
from pocketgraph.runtime.session import Session

NUMBERS = frozenset(("float", "int32", "int64", "uint8", "int8", "bool"))
"""Element types that projects feed."""
FRONT = "The model takes {names} of a recording, which the app computes{how}."
OF_TEXTS = """The model takes {names} of a text, which the app computes:

{steps}
ship writes the words of the tables into files, and texts to test these steps with"""
OF_SOUND = "this file takes the numbers of a spectrogram; an app that hears is made of {frozen}, beside it"
UNSAID = """nothing told how pixels were scaled in training: the app feeds values from 0 to 1; {mean}=127.5 and
{std}=127.5 feed those from -1 to 1""".replace("\n", " ")
OF_SPECTRA = "The model takes a spectrum: {step}."
OF_A_RECORDING = """ as TensorFlow does with {sound.ops}: {sound}. docs/shipping.md of pocketgraph has it in
Python, and so does `sound.py` of a project for the Raspberry Pi"""


@dataclass(frozen=True)
class WrittenProject:
    """A project that was written.

    Attributes:
        path: its folder.
        kind: the name of its kind.
        files: every file.
        bytes: of all of them.
        has_camera: whether it is for a camera: see Project.
        shown: what a person gets, in words.
        notes: what a person should know.
    """

    path: str
    kind: str
    files: tuple[str, ...]
    bytes: int
    has_camera: bool
    shown: str
    notes: tuple[str, ...]


def make_project(
    kind: str,
    source: Source,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    package: str | None = None,
    engine: str | None = None,
    labels: Lines = (),
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    signatures: Sequence[str] | None = None,
    shapes: Sizes | None = None,
    values: Mapping[str, Any] | None = None,
    samples: SampleSource | None = None,
    preset: str | None = None,
    input_mean: float | None = None,
    input_std: float | None = None,
    input_width: int | None = None,
    input_height: int | None = None,
    sample_rate: int | None = None,
    threads: int = 1,
    boxes: str | os.PathLike[str] = "",
    app: str = "",
    force: bool = False,
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> WrittenProject:
    """Writes a small, complete app around a model.

    Args:
        kind: ``android``, ``ios``, ``pi``, ``web`` or ``linux``.
        source: as for ``export``; a finished .tflite file goes in as it is, with its own labels and normalization.
        path: the project's folder.
        name: what people call the app; by default after the folder.
        package: of Java and the stores, ``com.example.name`` by default.
        engine: the target that it is built on, where there are several.
        labels: the name of each class, or the file that has one a line.
        inputs, outputs, signatures, shapes, values, samples: as for ``export``.
        preset, input_mean, input_std, input_width, input_height, sample_rate: likewise.
        threads: how many to compute with here.
        boxes: a file with a detector's priors or anchors.
        app: what a web page uses the model for, one of APPLICATIONS of 'live'; by default what it is for.
        force: write into a folder that is not empty.
        progress, notify: as for ``export``.

    Raises:
        UsageError: there is no such kind, a name cannot be, labels do not fit the output, or sizes are open.
        PocketgraphError: what stands in the way of the export.
    """
    chosen = kind_of(kind)
    built_on = engine_of(kind, chosen, engine)
    place = os.fspath(path)
    base = os.path.basename(os.path.abspath(place))
    title = name if name is not None else base.replace("-", " ").replace("_", " ").strip().capitalize()
    names = app_name(title, package)
    where = None if isinstance(source, Graph) else model_path(source)
    check_target(place, is_folder=True, force=force, source=where)
    made_of = project_source(kind, chosen, built_on, where or source, may_run_file=engine is None)
    labels = labels or made_of.labels
    source, outputs = _for_use(kind, chosen, app, made_of.source, outputs)
    reading = SampleReading(preset, input_mean, input_std, input_width, input_height, sample_rate, notify or unheard)
    if made_of.scaling is not None and input_mean is None and input_std is None:
        reading = replace(reading, input_mean=made_of.scaling[0], input_std=made_of.scaling[1])
    model = model_to_export(
        source, reading, inputs=inputs, outputs=outputs, signatures=signatures, shapes=shapes, values=values,
        labels=labels, about=About(name=names.title), samples=samples, threads=threads, progress=progress,
    )  # fmt: skip
    if not model.main.inputs:
        raise UsageError("the model has no inputs, and an app has nothing to give it", hint="see pocketgraph summarize")
    model, finished = as_it_is(model, made_of.path, kind, made_of.engine)
    if labels and not finished:
        model = scores_first(model)
    model = with_labels(model, made_of.path, reading.notify, is_finished=bool(finished))
    beside = graph_beside(made_of.path) if finished and made_of.path is not None else ""
    model, resized = as_large_as_resized(model, load(beside) if beside else model.graph)
    own = [*made_of.notes, *resized]
    if finished and model.front is None:
        model = replace(model, front=front_beside(frozen_of(made_of.path), model))
    if finished and model.front is None and _picture(model) is None and takes_recordings(frozen_of(made_of.path)):
        own.append(OF_SOUND.format(frozen=quoted(frozen_of(made_of.path))))
    if chosen.wanted_outputs is None:
        own += _channels_first(model, kind, place)
    notes = [*model.notes, *own, *check_sizes(model, "an app")]
    model = with_fixed_shapes(replace(model, entries=(model.main,)))
    project = replace(_project(kind, made_of.engine, names, model, finished, notes), boxes=os.fspath(boxes), app=app)
    _check_installed(chosen, project.engine)
    with workshop(place) as made:
        os.mkdir(made)
        chosen.write(project, made)
        written = put_in_place(made, place)
    if project.picture is not None and project.picture.is_assumed:
        project.notes.append(UNSAID.format(mean=option("input_mean"), std=option("input_std")))
    size = sum(os.path.getsize(file) for file in written)
    return WrittenProject(place, kind, tuple(written), size, project.has_camera, project.shown, tuple(project.notes))


def _for_use(
    kind: str, chosen: ProjectKind, app: str, source: Source, outputs: Sequence[str] | None
) -> tuple[Source, Sequence[str] | None]:
    """What is opened, and the tensors that an app of that use reads; None where the model's own outputs are.

    Raises:
        UsageError: apps of that kind have one use.
    """
    if chosen.wanted_outputs is None:
        if app:
            raise UsageError(
                f"a project for {kind} does not choose what the model is used for", hint="a page does: app web"
            )
        return source, outputs
    if outputs is not None:
        return source, outputs
    graph = source if isinstance(source, Graph) else read_model(source)
    wanted = chosen.wanted_outputs(graph, app)
    return (source if wanted is None or is_model_file(graph) else graph), wanted


def _check_installed(kind: ProjectKind, engine: str) -> None:
    """Says which extra is missing before anything is written, and which engines need none."""
    try:
        TARGETS[engine].write  # noqa: B018
    except MissingExtraError as error:
        free = [other for other in kind.engines if not TARGETS[other].missing]
        others = f", or {option('engine')}={'|'.join(free)}, which needs no more" if free else ""
        raise MissingExtraError(error.what, hint=f"{error.hint}{others}") from None


def _project(kind: str, engine: str, names: Any, model: ExportModel, source: str, notes: list[str]) -> Project:
    for port in (*model.main.inputs, *model.main.outputs):
        if port.dtype.name not in NUMBERS:
            raise UsageError(
                f"'{port.name}' is of the type {port.dtype.name}, and apps feed and read arrays of numbers",
                hint=f"choose with {option('inputs')} and {option('outputs')}",
            )
    try:
        feeds, wanted = _golden(model)
    except RunError as error:
        scalar = next((port for port in model.main.inputs if port.sizes == ()), None)
        if scalar is None:
            raise
        sizes = f"say its sizes, as in {shapes_option({scalar.name: (1, 224, 224, 3)})}"
        number = f"set it for good, as in {option('feed', 'values')}={scalar.name}=16000"
        raise UsageError(
            f"the graph states the input '{scalar.name}' as [], and does not run on that: {error.what}",
            hint=sizes if scalar.dtype.is_floating else number,
        ) from None
    outputs = tuple(
        replace(port, sizes=wanted[port.name].shape, shape=wanted[port.name].shape) for port in model.main.outputs
    )  # what a run tells, where inference leaves sizes open
    model = replace(model, entries=(replace(model.main, outputs=outputs),))
    notes += unproven(wanted)
    labels, picture, is_of_two = model.labels, _picture(model), is_share_of_two(model)
    if is_of_two:
        model = replace(model, labels=())  # those of a file are one for each score; the app has both
    if kind_of(kind).wanted_outputs is None:  # else labels may be of boxes or styles, which its writer knows
        try:
            check_labels(model)
        except UsageError:
            heads = outputs_before_selection(model.graph, [port.tensor for port in model.main.outputs])
            if heads is None:
                raise
            raise UsageError(
                "the model selects boxes itself, which is the app's here, and labels are for scores of classes",
                hint=f"cut in front of the selection with {option('outputs')}={','.join(heads)}, and leave "
                f"{option('labels')} out",
            ) from None
    is_coded = any(SCALES in node.attrs and any(_scales(node.attrs[SCALES])) for node in model.graph)
    rounds = any(COMPUTES_WITH_CODES.match(node.op) for node in model.graph)
    front, sound = "", sound_in_a_row(model)
    if model.front is not None:
        sound = sound_of(model.front)
        names_of = ", ".join(f"`{name}`" for name in model.front.shapes)
        front = FRONT.format(names=names_of, how="" if sound is None else OF_A_RECORDING.format(sound=sound))
    if model.texts is not None:
        names_of = ", ".join(f"`{cut.name}`" for cut in model.texts.cuts)
        steps = "".join(f"- {step}\n" for step in text_steps(model.texts, {}))
        front = OF_TEXTS.format(names=names_of, steps=steps)
        if not model.texts.takes_texts:
            front = OF_SPECTRA.format(step=spectrum_step(model.texts))
    return Project(
        kind, engine, names, model, source, picture,
        is_of_two or gives_scores(model, takes_a_picture=picture is not None), labels, (feeds, wanted),
        CODED_TOLERANCE if is_coded or rounds else TOLERANCE, rounds, front, sound, notes,
    )  # fmt: skip


def _scales(value: Any) -> Sequence[float]:
    return value if isinstance(value, tuple) else ()


def _picture(model: ExportModel) -> PictureFacts | None:
    """How pictures become the first input; None where it does not look like one."""
    port = model.main.inputs[0]
    sizes = port.sizes or ()
    if len(model.main.inputs) != 1 or len(sizes) != 4 or sizes[0] != 1 or sizes[3] not in (1, 3):
        return None
    if port.dtype.name not in ("float", "uint8", "int8") or min(sizes[1:3]) < 8:
        return None
    how, is_assumed = model.normalization, False
    if how is None:
        is_byte = port.dtype.name == "uint8" and not has_codes(model.graph, port.tensor)
        how = Normalization() if is_byte else Normalization((0.0,), (255.0,))
        is_assumed = not is_byte and inferred_scaling(model.graph, port.tensor) is None
    channels = sizes[3]
    mean, std = (part * channels if len(part) == 1 else part for part in (how.mean, how.std))
    return PictureFacts(sizes[1], sizes[2], channels, mean, std, is_assumed)


def _channels_first(model: ExportModel, kind: str, place: str) -> list[str]:
    """That the app has no pictures because the model has its channels first, a sentence; none where it is not so."""
    port, *others = model.main.inputs
    sizes = port.sizes or ()
    if len(sizes) != 4 or layout_of(sizes) != "NCHW":
        return []
    last = replace(port, sizes=(sizes[0], *sizes[2:], sizes[1]))
    if _picture(replace(model, entries=(replace(model.main, inputs=(last, *others)),))) is None:
        return []
    web = command_on_model(
        f"pocketgraph app web {{}} -o {quoted(f'{os.path.normpath(place)}_web')}", "a page for the web"
    )
    return [
        f"'{port.name}' takes the channels of a picture first, {list(sizes)} (NCHW), and apps for {kind} give them "
        f"last, so this one takes arrays; {web} takes pictures for it"
    ]


def _golden(model: ExportModel) -> tuple[dict[str, Array], dict[str, Array]]:
    """One set of inputs, and what the graph makes of them, by public name and in the types that the file has."""
    entry, graph = model.main, model.graph
    feeds = taken_feeds(model)
    given = {}
    for port in entry.inputs:
        array = np.asarray(feeds[port.name])
        given[port.name] = coded(graph, port.tensor, array) if is_litert_file(graph) else array
    with Session(graph, model.threads, engine="litert" if is_litert_file(graph) else "reference") as session:
        return given, entry.run(session, given)
