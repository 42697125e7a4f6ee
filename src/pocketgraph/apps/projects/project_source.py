"""What a project is made of: a finished LiteRT file as it is, or the graph that it was made from."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from pocketgraph.apps.projects.kinds import KINDS, ProjectKind, kind_of
from pocketgraph.apps.shipping.shipment import FROZEN, frozen_beside, frozen_of
from pocketgraph.datasets.class_scores import says_scores
from pocketgraph.datasets.sample_reading import Notify
from pocketgraph.errors import UsageError, option, quoted
from pocketgraph.exporting.labels import check_labels
from pocketgraph.exporting.model import ExportModel, Normalization, Source
from pocketgraph.formats import Kind, identify, load
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.model_file_graph import is_litert_file, is_model_file, refuse_finished
from pocketgraph.quantization.class_names import class_names, labels_beside

OF_GRAPH = "a project for {kind} is built of the graph, {frozen}, in floats, and not of {file}, which was made from it"
OF_FILE = (
    "a project for {kind} runs {file} itself, by LiteRT; one on Core ML is built of the graph that it was made from"
)


@dataclass(frozen=True)
class ProjectSource:
    """What a project is made of.

    Attributes:
        source: what is opened.
        path: its file or folder; None for a graph.
        engine: what the app runs it on.
        labels, scaling: what the LiteRT file says in whose place its graph is taken.
        notes: what a person should know of the choice.
    """

    source: Source
    path: str | None
    engine: str
    labels: tuple[str, ...] = ()
    scaling: tuple[float | tuple[float, ...], float | tuple[float, ...]] | None = None
    notes: tuple[str, ...] = ()


def engine_of(kind: str, chosen: ProjectKind, engine: str | None) -> str:
    """What an app of that kind runs on: the kind's first choice where nobody says.

    Raises:
        UsageError: the kind has no such engine.
    """
    built_on = engine or chosen.engines[0]
    if built_on not in chosen.engines:
        raise UsageError(
            f"a project for {kind} is not built on '{built_on}'", hint=f"{option('engine')}={'|'.join(chosen.engines)}"
        )
    return built_on


def project_source(kind: str, chosen: ProjectKind, engine: str, source: Source, *, may_run_file: bool) -> ProjectSource:
    """The graph that a LiteRT file was made from, for engines that do not run the file; else what was given.

    Args:
        kind, chosen: of the project.
        engine: what it is to be built on.
        source: a graph, or the path of what is opened.
        may_run_file: whether a finished file without its graph may be run by LiteRT in place of the engine.
    """
    if isinstance(source, Graph):
        return ProjectSource(source, None, engine)
    path = os.fspath(source)
    if engine == "tflite":
        return ProjectSource(path, path, engine)
    frozen = graph_beside(path)
    if frozen:
        about = metadata(load(path).extra)
        note = OF_GRAPH.format(kind=kind, frozen=quoted(frozen), file=quoted(path))
        labels, scaling = ((), None) if about is None else (tuple(about.labels), about.scaling)
        return ProjectSource(frozen, frozen, engine, labels, scaling, (note,))
    if may_run_file and "tflite" in chosen.engines and identify(path).kind is Kind.TFLITE:
        return ProjectSource(path, path, "tflite", notes=(OF_FILE.format(kind=kind, file=quoted(path)),))
    return ProjectSource(path, path, engine)


def with_labels(model: ExportModel, where: str | None, notify: Notify, *, is_finished: bool) -> ExportModel:
    """The model with the names of classes that its graph, or a file beside it, tells where nobody gave any."""
    scores = model.main.outputs[0].tensor
    if not is_finished and not model.labels:
        model = replace(model, labels=tuple(class_names(model.graph, scores)))
    if where is None or model.labels or not says_scores(model.graph, scores):
        return model
    return replace(model, labels=tuple(labels_beside(where, model.graph, scores, notify)))


def graph_beside(path: str) -> str:
    """The graph beside a finished LiteRT file that ``ship`` wrote; "" where there is none that has what goes in and out
    of the file, or the path is another."""
    frozen = frozen_of(path) if os.path.isfile(path) and os.path.basename(path) != FROZEN else ""
    file = load(path) if frozen else Graph(())
    if not is_litert_file(file):
        return ""
    graph = load(frozen)
    ports = (port for one in file.signatures.values() for ports in (one.inputs, one.outputs) for port in ports.items())
    return frozen if all(any(node_name(name) in graph for name in names) for names in ports) else ""


def as_it_is(model: ExportModel, where: str | None, kind: str, engine: str) -> tuple[ExportModel, str]:
    """The model with what a finished file says of itself, and the path of that file; "" where it is to be exported.

    Raises:
        UsageError: the project cannot take the file as it is.
    """
    if not is_model_file(model.graph):
        return model, ""
    if engine != "tflite" or not is_litert_file(model.graph) or where is None:
        engines = kind_of(kind).engines
        takes_files = engine != "tflite" and "tflite" in engines and is_litert_file(model.graph)
        hint = frozen_beside(where) + (f", or {option('engine')}=tflite" if takes_files else "")
        if "tflite" not in engines and is_litert_file(model.graph):
            others = ", ".join(name for name, one in KINDS.items() if "tflite" in one.engines)
            hint += f", or a kind that runs the file itself: {others}"
        built_on = f" with {option('engine')}={engine}" if len(engines) > 1 else ""
        refuse_finished(model.graph, f"a project for {kind}{built_on}", hint)
    assert where is not None
    about = metadata(model.graph.extra)
    if about is None:
        return model, where
    normalization = model.normalization
    if normalization is None and about.mean:
        normalization = Normalization(about.mean, about.std)
    told = replace(model, labels=model.labels or about.labels, normalization=normalization)
    if not model.labels and kind_of(kind).wanted_outputs is None:  # else they may be of boxes or of pixels
        try:
            check_labels(told)
        except UsageError as error:
            note = f"the labels in the file's metadata are left out: {error.what}"
            return replace(told, labels=(), notes=(*told.notes, note)), where
    return told, where
