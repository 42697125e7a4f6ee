"""``pocketgraph.verify``: two models on the same feeds, made up, out of files, or a set for each sample of data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

from pocketgraph.apps.file_feeds import Given, feeds_of, is_given
from pocketgraph.apps.text_feeds import feeds_behind_texts, may_read_texts
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.sample_reading import Notify, SampleReading, unheard
from pocketgraph.errors import UsageError, option
from pocketgraph.freezing.ready_models import for_session, read_model, refuse_signature_of_none, signature_for
from pocketgraph.freezing.training_dir import model_path
from pocketgraph.graph import Graph
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.passes.training_switches import switches_note, values_in_use
from pocketgraph.quantization.evaluation.data_feeds import data_feeds
from pocketgraph.runtime.comparison import verification
from pocketgraph.runtime.comparison.compared_models import ComparedModel, Model
from pocketgraph.runtime.comparison.comparison_report import Report
from pocketgraph.runtime.feeding.default_tensors import default_fetches

OF_RUNTIMES = (".tflite", ".onnx")
MADE_UP = 20  # texts, where none are given


def verify(
    a: Model,
    b: Model | None = None,
    inputs: Given | Iterable[Mapping[str, Any]] | None = None,
    outputs: Sequence[str] | None = None,
    tolerance: float | None = None,
    *,
    data: SampleSource | None = None,
    data_inputs: Sequence[str] = (),
    limit: int = 100,
    top1: float | None = None,
    runs: int | None = None,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    feeds: Mapping[str, Any] | None = None,
    partial: bool = False,
    signature: str | None = None,
    engine: str | None = None,
    engines: bool = False,
    threads: int | None = None,
    preset: str | None = None,
    input_mean: float | None = None,
    input_std: float | None = None,
    input_width: int | None = None,
    input_height: int | None = None,
    sample_rate: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    notify: Notify | None = None,
) -> Report:
    """Runs two models on the same feeds and compares their outputs; a ``Report`` is true when they agree.

    An output fails, whatever its numbers, when it depends on other inputs in one model than in the other, or is always
    the same in one while it varies in the other.

    >>> from pocketgraph.graph.text_format import parse
    >>> exact = parse("x = Placeholder(dtype=float, shape=[2])\\ny = Relu(x, T=float)")
    >>> rough = parse("x = Placeholder(dtype=float, shape=[2])\\ny = Relu6(x, T=float)")
    >>> report = verify(exact, rough, {"x": [1.0, 8.0]})
    >>> report.passed, report.outputs[0].largest, report.outputs[0].largest_relative
    (False, 2.0, 0.25)
    >>> report
    <Report: 1 of 1 outputs differ, within 0.0001 of the largest magnitude on 1 set of feeds; y: 2, 0.25 of the peak>

    Args:
        a: the model that is right: a Graph, a model file, .tflite and .onnx included, or a directory.
        b: the model to be judged, likewise; none with ``engines``.
        inputs: arrays, or paths of pictures, recordings, texts or arrays, by tensor name; several such sets; or the
            path of an .npz of arrays. By default values made up from the placeholders of ``a``.
        outputs: the tensors to compare; by default those that ``a`` declares or is likely to have and ``b`` has too.
        tolerance: the largest difference that passes, as a share of the largest magnitude of the output in ``a``; by
            default 1e-4, and for eight-bit models agreement, divergence and signal-to-noise ratio on the feeds.
        data: pictures, recordings, a table or arrays, a set of feeds each, as for ``evaluate``.
        data_inputs: the tensors that ``data`` is fed to.
        limit: how many samples of ``data`` to take.
        top1: the least share of rows whose largest element must be the same.
        runs: how many sets of made-up feeds; 2 by default.
        seed: for made-up feeds.
        shapes: of inputs to make up, by name, where the model leaves sizes open; "" is the only input.
        feeds: what other placeholders are set to, such as ``{"keep_prob": 1.0}``; a switch of training that nothing
            feeds is as outside of training.
        partial: whether feeds may cut weights off, which then are not compared.
        signature: of SavedModels, the one that says what goes in and comes out; by default the main one.
        engine, threads: as for Session.
        engines: run ``a`` on the reference engine, which is right, and ``a`` as sessions do by default.
        preset, input_mean, input_std, input_width, input_height, sample_rate: see ``SampleReading``.
        progress: told the stage, how many sets of feeds are done, and of how many.
        notify: told what is easily overlooked.

    Returns:
        A report with ``passed``, and for each output how far apart the models are.

    Raises:
        UsageError: feeds or outputs that the models do not have, feeds that cut weights off, or options that do not go
            together.
        RunError: one of them does not run.
    """
    _check_options(b, engines, inputs, data, runs, shapes)
    refuse_signature_of_none(signature, (a, b))
    a = _ready(a, outputs, signature, notify)
    b = None if b is None else _ready(b, outputs, signature, notify)
    reading = SampleReading(
        preset, input_mean, input_std, input_width, input_height, sample_rate, notify or unheard
    )  # fmt: skip
    other = a if b is None else b
    given: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None
    behind = None
    if inputs is None and not data_inputs and _is_of_a_runtime(other) and may_read_texts(a):
        behind = feeds_behind_texts(
            a if isinstance(a, Graph) else read_model(os.fspath(a), outputs), other, data, reading, outputs=outputs,
            values=feeds, limit=limit if data is not None else runs or MADE_UP, seed=seed,
        )  # fmt: skip
    if behind is not None:
        a, given = behind
    elif data is not None:
        with closing(ComparedModel(a, threads, None)) as model:
            given = data_feeds(
                model.graph, data, reading, outputs=outputs, inputs=data_inputs, limit=limit,
                values=_with_switches(model.graph, data_inputs, feeds, outputs, reading.notify),
                reads_recordings=not _is_of_a_runtime(other),
            )  # fmt: skip
    elif inputs is not None and not is_given(inputs):
        given = [{**some, **(feeds or {})} for some in cast("Iterable[Mapping[str, Any]]", inputs)]
    elif inputs is not None:
        with closing(ComparedModel(a, threads, None)) as model:
            said = feeds_of(model.graph, cast("Given", inputs), reading, outputs or ())
            given = {**said, **_with_switches(model.graph, said, feeds, outputs, reading.notify)}
    return verification.verify(
        a, other, given, outputs, tolerance, top1=top1, runs=2 if runs is None else runs, seed=seed, engine=engine,
        threads=threads, shapes=shapes, partial=partial, engines=engines, progress=progress,
    )  # fmt: skip


def _check_options(
    b: Model | None, engines: bool, inputs: object, data: object, runs: int | None, shapes: object
) -> None:
    """Refuses options that do not go together.

    Raises:
        UsageError: some do not.
    """
    if b is None and not engines:
        raise UsageError("there is nothing to compare with", hint=f"name a second model, or say {option('engines')}")
    if b is not None and engines:
        raise UsageError(f"{option('engines')} compares one model with itself", hint="leave the second one out")
    is_made_up = inputs is None and data is None
    if not is_made_up and runs is not None:
        said = f"{option('inputs')} is one set, {option('data')} one for each sample"
        raise UsageError(f"{option('runs')} is for made-up feeds; {said}")
    if not is_made_up and shapes:
        raise UsageError(f"{option('input_shape', 'shapes')} is for made-up feeds; arrays and samples have shapes")
    if inputs is not None and data is not None:
        raise UsageError(f"{option('inputs')} and {option('data')} both say what is fed", hint="pass one of them")


def _ready(model: Model, outputs: Sequence[str] | None, signature: str | None, notify: Notify | None) -> Model:
    """What a session takes for a model; only directories have signatures to choose from."""
    if isinstance(model, Graph):
        return model
    return for_session(model, outputs, signature=signature_for(model, signature), notify=notify)


def _with_switches(
    graph: Graph, fed: Iterable[str], feeds: Mapping[str, Any] | None, outputs: Sequence[str] | None, notify: Notify
) -> dict[str, Any]:
    """``feeds``, and what tells training from use as outside of training, unless it is fed."""
    switches = values_in_use(graph, [*fed, *(feeds or ())], outputs or default_fetches(graph))
    if switches:
        notify(switches_note(switches))
    return {**switches, **(feeds or {})}


def _is_of_a_runtime(model: Model) -> bool:
    """Whether a model is of a form that does not read recordings itself."""
    return is_model_file(model) if isinstance(model, Graph) else model_path(model).endswith(OF_RUNTIMES)
