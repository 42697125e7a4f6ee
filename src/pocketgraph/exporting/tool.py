"""The front door: a model goes in, what ships comes out, and a check against the reference engine is between them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.datasets.class_scores import picked_note, scores_picked_from
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.datasets.sample_reading import Notify, SampleReading, once, unheard
from pocketgraph.errors import UsageError, path_of
from pocketgraph.exporting.atomic_output import check_target, put_in_place, workshop
from pocketgraph.exporting.export_verification import Checked, check
from pocketgraph.exporting.model import About, ExportModel, Source
from pocketgraph.exporting.opening import opened
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.random_draws import check_with_draws_fed
from pocketgraph.exporting.refusal_help import help_with_refusal
from pocketgraph.exporting.samples import with_samples
from pocketgraph.exporting.target_options import arguments_of
from pocketgraph.exporting.targets import Target, target_of
from pocketgraph.exporting.text_opening import Texts
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.pages.quantities import bytes_text
from pocketgraph.quantization.core.quantization_options import Progress
from pocketgraph.quantization.stated_sizes import Sizes

Lines: TypeAlias = "Sequence[str] | str | os.PathLike[str]"
"""Lines of text, or the path of a file with them."""


@dataclass(frozen=True, repr=False)
class Exported:
    """What was written, and the proof that it is the same model.

    Attributes:
        path: where it is.
        target: the name of the target.
        files: every file, the main one first.
        bytes: of all of them.
        notes: what a person should know.
        checks: one entry an entry point; empty when it cannot run on this machine.
        unchecked: why it was not run; else "".
    """

    path: str
    target: str
    files: tuple[str, ...]
    bytes: int
    notes: tuple[str, ...]
    checks: tuple[Checked, ...]
    unchecked: str = ""

    def __repr__(self) -> str:
        largest = max((output.largest_relative for item in self.checks for output in item.outputs), default=0.0)
        proof = f"at most {largest:.3g} of the peak from the graph" if self.checks else f"not run: {self.unchecked}"
        if unproven := [output.name for item in self.checks for output in item.outputs if output.unproven]:
            proof = f"not proven for {', '.join(unproven)}, mostly NaN or infinite"
        return f"<Exported {self.path}: {self.target}, {bytes_text(self.bytes)}; {proof}>"


def export(
    source: Source,
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    signatures: Sequence[str] | None = None,
    shapes: Sizes | None = None,
    values: Mapping[str, Any] | None = None,
    labels: Lines = (),
    calibration: Lines = (),
    about: About | None = None,
    samples: SampleSource | None = None,
    limit: int = 100,
    preset: str | None = None,
    input_mean: float | None = None,
    input_std: float | None = None,
    input_width: int | None = None,
    input_height: int | None = None,
    sample_rate: int | None = None,
    keep_dropout: bool = False,
    tolerance: float | None = None,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
    notify: Notify | None = None,
    **options: Any,
) -> Exported:
    """Writes a model in a form that a device runs, and proves that it is the same model.

    >>> import numpy as np, pocketgraph
    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse("x = Placeholder(dtype=float, shape=[1, 2])\\ny = Relu(x, T=float)")
    >>> made = pocketgraph.export(graph, "small.tflite", samples=np.float32([[-1, 2]]))
    >>> made.checks[0].passed, made.target
    (True, 'tflite')

    Args:
        source: a graph, a model file, or the directory of a SavedModel or training.
        path: the file or folder to write; its suffix says which form unless ``target`` does.
        target: the name of a target; ``pocketgraph export --help`` lists them.
        inputs, outputs, signatures, shapes, values, keep_dropout: see ``opening.opened``.
        labels: the name of each class of the first output, or of the only softmax, or the file that has one a line.
        calibration: of scores, a line for each class, or the file that has them.
        about: name, author, licence and such.
        samples: realistic inputs: a folder, a file, or arrays by public name with samples along the first axis, as for
            ``quantize``. What needs calibration is calibrated with them, and the check uses them; by default it makes
            some up.
        limit: how many of the samples to take.
        preset, input_mean, input_std, input_width, input_height, sample_rate: see ``SampleReading``; what they say of
            pictures and recordings is what the file tells the task libraries.
        tolerance: the largest difference that passes, as a share of the output's largest value.
        threads: how many to compute with here.
        force: write into a folder that is not empty.
        progress: told how far it is.
        notify: told what is easily overlooked, a sentence each.
        options: of the target.

    Returns:
        The files that were written, their bytes, and for each signature how far it is from the graph.

    Raises:
        UsageError: arguments that do not go together or do not fit the model.
        DifferenceError: the numbers are past the tolerance; no file stays.
        PocketgraphError: what else stands in the way.
    """
    place = path_of(path, "what to write")
    chosen = target_of(place, target)
    arguments = arguments_of(chosen, options)
    check_target(
        place, is_folder=chosen.is_folder, force=force, source=None if isinstance(source, Graph) else path_of(source)
    )
    tell = once(notify or unheard)  # what takes texts may be opened twice
    reading = SampleReading(preset, input_mean, input_std, input_width, input_height, sample_rate, tell)
    made = partial(
        model_to_export, source, reading, inputs=inputs, outputs=outputs, signatures=signatures, shapes=shapes,
        values=values, labels=labels, calibration=calibration, about=about, samples=samples, limit=limit,
        threads=threads, progress=progress, keep_dropout=keep_dropout,
    )  # fmt: skip
    model = made(takes_texts=chosen.takes_texts)
    try:
        return export_model(model, place, chosen, arguments, tolerance=tolerance, force=force)
    except LackingError:
        if not chosen.takes_texts:
            raise
        behind = made()
        if behind.texts is None and len(behind.main.outputs) == len(model.main.outputs):
            raise
    return export_model(behind, place, chosen, arguments, tolerance=tolerance, force=force)


def model_to_export(
    source: Source, reading: SampleReading, *, inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None, signatures: Sequence[str] | None = None, shapes: Sizes | None = None,
    values: Mapping[str, Any] | None = None, labels: Lines = (), calibration: Lines = (), about: About | None = None,
    samples: SampleSource | None = None, limit: int = 100, threads: int = 1, progress: Progress | None = None,
    takes_texts: bool = False, keep_dropout: bool = False,
) -> ExportModel:  # fmt: skip
    """A model with everything that goes with it.

    Args:
        source: as for ``export``, as are all the others but these.
        reading: how the samples are read.
        takes_texts: whether the target holds what reads texts.

    Raises:
        UsageError, FormatError, FreezeError: as ``export``.
    """

    def made(outputs: Sequence[str] | None) -> ExportModel:
        return opened(
            source, inputs=inputs, outputs=outputs, signatures=signatures, shapes=shapes, values=values,
            texts=_texts(samples, reading), takes_texts=takes_texts, notify=reading.notify, keep_dropout=keep_dropout,
        )  # fmt: skip

    model = made(outputs)
    is_sole = not outputs and not signatures and len(model.entries) == 1 and len(model.main.outputs) == 1
    answer = model.main.outputs[0]
    scores = scores_picked_from(model.graph, answer.tensor) if (labels or answer.dtype is STRING) and is_sole else None
    if scores is not None and canonical(scores) not in (port.tensor for port in model.main.inputs):
        reading.notify(picked_note(answer.name, scores) + (", as labels are for them" if labels else ""))
        model = made([scores])
    if model.texts is not None:
        reading.notify(model.texts.words(is_open=True))
    if model.front is not None:
        forms = ", ".join(f"{name} {list(shape)}" for name, shape in model.front.shapes.items())
        reading.notify(f"the part behind {forms} is written; what reads recordings is the app's")
    is_heard = model.front is None and model.texts is None
    model = with_samples(model, samples, reading, limit)
    rate = reading.sample_rate or model.sample_rate or (model_sample_rate(model.graph) if is_heard else None)
    return replace(
        model, labels=_lines(labels), calibration=_lines(calibration), about=about or About(),
        sample_rate=rate, threads=threads, progress=progress or model.progress,
    )  # fmt: skip


def _texts(samples: SampleSource | None, reading: SampleReading) -> Texts | None:
    """Samples of a model that takes texts; None where there are none."""
    if samples is None:
        return None
    return lambda inputs: reading.open(samples, inputs, PictureScaling()).samples()


def _lines(given: Lines) -> tuple[str, ...]:
    """Lines, or those of a file."""
    return tuple(read_labels(given)) if isinstance(given, str | os.PathLike) else tuple(given)


def export_model(
    model: ExportModel,
    path: str,
    target: Target,
    arguments: Mapping[str, Any],
    *,
    tolerance: float | None = None,
    force: bool = False,
    is_timed: bool = True,
) -> Exported:
    """As ``export``, for a model that is open and a target that is chosen.

    Args:
        path: the file or folder to write.
        arguments: the keyword arguments of its exporter.
        tolerance, force: as for ``export``.
        is_timed: whether somebody wants to know how long a run takes.
    """
    check_target(path, is_folder=target.is_folder, force=force)
    refuse_finished(model.graph, "export")
    if model.variables and not target.has_variables:
        raise UsageError(
            f"{target.name} has no variables, and the model changes some ('{next(iter(model.variables))}')",
            hint="freeze it for inference, or export it to .tflite",
        )
    with workshop(path) as made:
        try:
            written = target.write(model, made, **arguments)
        except LackingError as lacking:
            lacking.add_hint(help_with_refusal(model, target.name, lacking.reasons))
            raise
        written.is_timed &= is_timed
        checks = (
            check_with_draws_fed(model, written, target.write, arguments, tolerance)
            if written.draws
            else check(model, written, tolerance)
        )
        files = put_in_place(made, path)
    size = sum(os.path.getsize(name) for name in files)
    return Exported(
        path, target.name, tuple(files), size, (*model.notes, *written.notes), tuple(checks), written.unchecked
    )
