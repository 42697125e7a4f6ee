"""From a trained model and data to the file that ships: the smallest form that keeps what may be lost, and a verdict.

Freezes and repairs, strips and folds, then tries one form after the other, each judged on samples that it was not made
with, until one keeps the budget; the float file is the last one and keeps any. What is done by whom: see the imports.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pocketgraph.apps.file_metadata import described_file
from pocketgraph.apps.model_comparison import verify
from pocketgraph.apps.quantizing import quantize
from pocketgraph.apps.shipping.answer_judging import (
    CHANGED_ANSWERS,
    FEWEST_JUDGED,
    LOST_ANSWERS,
    KeptAnswers,
    check_labels,
    kept_answers,
    likely_numbers,
    refuse_labels_of_boxes,
    takes_labels,
    unseen,
)
from pocketgraph.apps.shipping.device_times import device_times
from pocketgraph.apps.shipping.form_gain import worse_than_floats
from pocketgraph.apps.shipping.found_boxes import box_heads, found_boxes, names_told
from pocketgraph.apps.shipping.held_back import held_back_last
from pocketgraph.apps.shipping.input_sizes import unsaid_picture_sizes, unsaid_sizes
from pocketgraph.apps.shipping.next_commands import file_commands, judging_command
from pocketgraph.apps.shipping.pixel_scaling import likeliest_scaling, unsaid_scaling, with_scaling_told
from pocketgraph.apps.shipping.preparation import answers_for_places, numbers_and_texts, prepared, whole_model
from pocketgraph.apps.shipping.resuming import earlier, keep, key_of, listed_files, made_folder, outdate
from pocketgraph.apps.shipping.shipment import (
    FROZEN,
    MODEL,
    PAGE,
    SHIPPED_FORMS,
    STATE,
    Shipment,
    Tried,
    check_call,
    frozen_beside,
    holds_fewer_bits,
    size_cause,
)
from pocketgraph.apps.shipping.shipping_page import as_html
from pocketgraph.apps.shipping.texts import write_text_files
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.datasets.sample_reading import Notify, SampleReading, once, unheard
from pocketgraph.datasets.signature_choice import refuse_several_signatures
from pocketgraph.errors import RunError, UsageError, option, path_of
from pocketgraph.exporting import export
from pocketgraph.formats import save
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.model_file_facts import model_bytes
from pocketgraph.freezing import freeze
from pocketgraph.freezing.ready_models import ready
from pocketgraph.freezing.run_state import forgotten
from pocketgraph.graph import Graph
from pocketgraph.graph.entry_points import other_ends
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.litert.graph_content import graph_digest
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.class_names import class_names_of_model, judge_samples, write_labels
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.evaluation.evaluator import EvaluationOptions, evaluate_with
from pocketgraph.quantization.evaluation.labelled_output import with_labelled_first
from pocketgraph.quantization.evaluation.model_evaluation import Evaluation, largest_inputs
from pocketgraph.quantization.evaluation.runnable_models import open_model
from pocketgraph.quantization.float_program import with_feeds
from pocketgraph.quantization.stated_sizes import Sizes
from pocketgraph.quantization.text_inputs import of_heard_length, text_inputs
from pocketgraph.runtime.comparison.answer_metrics import noise_words
from pocketgraph.runtime.feeding.default_tensors import needed_placeholders
from pocketgraph.transforms import transform

MOST_CALIBRATED = 100  # samples
CALIBRATED_SHARE = 0.6  # of the samples, where there are few: the others judge
MOST_JUDGED = 200  # samples
MOST_DENSE = 30  # samples to calibrate with, and to judge on, of a model that answers for each place of a picture
MOST_CHECKED = 8  # texts that an exported file is held against the graph on
MOST_JUDGED_OTHERS = 50  # of outputs besides the first
SAFE_DECIBELS = 25.0  # on made-up inputs, from which a form ships without data
Make = Callable[[str], Sequence[str]]  # writes a form to a path, and tells what was done


def ship(
    model: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    target: str = "android",
    outputs: Sequence[str] | None = None,
    max_accuracy_drop: float | None = None,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    shapes: Sizes | None = None,
    feeds: Mapping[str, Any] | None = None,
    preset: str | None = None,
    input_mean: float | None = None,
    input_std: float | None = None,
    input_width: int | None = None,
    input_height: int | None = None,
    sample_rate: int | None = None,
    allow_training_batch_norm: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> Shipment:
    """Makes the file that ships, and writes it with all that belongs to it into a folder.

    The same call made again goes on where an interrupted one was.

    Args:
        model: a graph's file, or the directory of a SavedModel or a training.
        folder: where everything goes; it is made.
        data: pictures, recordings, a table or arrays, as for ``quantize``; the first ones calibrate, the others judge;
            of a folder that ``retrain`` took, those judge that it holds back unless it is told otherwise.
        labels: the file that names the class of each score, a line each.
        target: where it goes, one of TARGETS: on which devices its time is estimated.
        outputs: names of tensors; by default the model's own, or the likeliest.
        max_accuracy_drop: what may be lost, in percentage points: of right answers, where the data tell classes; else
            of answers that stay what they were. By default 2, and 5.
        signature: of a SavedModel, the one that says what goes in and comes out; by default the main one.
        inputs: tensors that the app feeds; what is in front of them does not ship. By default the model's own.
        shapes, feeds: by name, sizes of inputs that are open, "" for the only one; values of other placeholders.
        preset, input_mean, input_std, input_width, input_height, sample_rate: see ``SampleReading``.
        allow_training_batch_norm: as for ``freeze``.
        threads, progress, notify: as for ``quantize``.

    Returns:
        What was tried, what ships, and the verdict.

    Raises:
        UsageError: the data do not fit the model, or a name is of nothing.
        PocketgraphError: the model is damaged, or not even the float file can be made.
    """
    place, source = path_of(folder, "a folder"), path_of(model)
    check_call(place, target, max_accuracy_drop, data, labels)
    reading = {
        "preset": preset, "input_mean": input_mean, "input_std": input_std, "input_width": input_width,
        "input_height": input_height, "sample_rate": sample_rate,
    }  # fmt: skip
    asked = repr(
        (str(data), str(labels), list(outputs or ()), target, max_accuracy_drop, signature, inputs, shapes, reading)
    )
    notify_once = once(notify or unheard)  # each form reads the data anew
    allowed = {"allow_training_batch_norm": allow_training_batch_norm}
    found = ready(source, outputs, signature=signature, repair=True, **allowed)
    for note in found.notes:
        notify_once(note)
    graph = with_feeds(found.graph, feeds or {})
    refuse_finished(graph, "ship", frozen_beside(source))
    if not (signature or outputs):
        refuse_several_signatures(graph, data)
    wanted, texts = numbers_and_texts(graph, outputs or whole_model(graph, notify_once), in_order=bool(outputs))
    asked += f"{feeds!r} {graph_digest(found.graph)}"  # weights lie in other files than the model's, too
    key = key_of((source, data, labels, *listed_files(data)), asked, place)
    work = _Work(source, place, data, labels, wanted, max_accuracy_drop, reading, threads, progress or silent,
                 notify_once, key)  # fmt: skip
    if left := [] if outputs or graph.outputs or graph.signatures else other_ends(graph, wanted):
        notify_once(f"left out: {', '.join(left[:5])}; {option('outputs')}={','.join([*wanted, *left[:5]])} ships more")
    whole = graph
    graph, work.outputs, work.reading = prepared(graph, wanted, reading, notify_once, inputs or (), shapes)
    work.numbers = dict.fromkeys(box_heads(whole, wanted, work.outputs), "")
    work.app_names = names_told(labels, source, whole, work.numbers, notify_once)
    if labels is None and not work.app_names and work.outputs[0] not in work.numbers:  # in a file beside the model
        work.app_names = work.names = class_names_of_model(source, found, work.outputs[0], signature, notify_once)
    graph = of_heard_length(graph, work.outputs, (), data, SampleReading(**work.reading, notify=notify_once))
    work.boxes, work.key = partial(found_boxes, whole, work.app_names), work.key + repr(work.app_names)
    if labels is not None and work.outputs != wanted:
        work.labels = None
        notify_once(f"labels are of what the app makes of {', '.join(work.outputs)}, so they do not judge what ships")
    refuse_labels_of_boxes(graph, work.outputs, work.labels)
    work.target, work.freezing = target, {"repair": True, **allowed}
    if found.freezing is not None and found.freezing.forgets:
        work.forgets = forgotten(found.freezing.forgets)
    if texts:
        given = f"{', '.join(texts)} {'gives' if len(texts) == 1 else 'give'} texts, which do not ship"
        work.result.unknown.append(f"{given}; {'labels.txt has' if work.names else 'the labels name'} the classes")
    with made_folder(place, notify_once):
        return earlier(place, work.key) or work.run(graph)


class _Work:
    """A model on its way to the folder."""

    def __init__(
        self, source: str, folder: str, data: str | os.PathLike[str] | None, labels: str | os.PathLike[str] | None,
        outputs: list[str], most: float | None, reading: dict[str, Any], threads: int, progress: Progress,
        notify: Notify, key: str,
    ) -> None:  # fmt: skip
        self.folder, self.data, self.labels, self.outputs, self.most = folder, data, labels, outputs, most
        self.reading, self.threads, self.progress, self.notify, self.key = reading, threads, progress, notify, key
        self.result = Shipment(os.path.basename(os.path.normpath(source)), folder)
        self.source, self.target, self.problem = source, "android", ""
        self.freezing: dict[str, Any] = {}
        self.forgets = ""  # why its answers cannot be right, where it forgets
        self.names: list[str] = []  # of classes, as the graph has them
        self.app_names: list[str] = []  # of classes or of what is in boxes, for labels.txt
        self.boxes: Callable[..., tuple[str, str]] = partial(found_boxes, Graph(()), ())
        self.sizes: dict[str, tuple[int, ...]] = {}  # of inputs, as samples tell them
        self.numbers: dict[str, str] = {}  # outputs that are judged as such, and what is assumed of each

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def run(self, graph: Graph) -> Shipment:
        whole = freeze(graph, self.outputs, **self.freezing)
        inputs = needed_placeholders(whole, self.outputs)
        frozen = transform(whole, "mobile", inputs, self.outputs)
        told = with_scaling_told(frozen, whole, inputs, self.outputs).replace(source=self.path(FROZEN))
        outdate(self.folder)
        save(told, self.path(FROZEN))
        result = self.result
        result.steps.append(
            f"read {result.model} ({counted(len(graph), 'node')}), froze and repaired it, stripped and folded it: "
            f"{FROZEN} ({counted(len(frozen), 'node')})"
        )
        result.doubt = self.forgets or (unsaid_sizes(frozen, self.outputs) if self.data is None else "")
        result.unknown += unsaid_picture_sizes(frozen, self.outputs) if self.data is None else []
        self.data, taught = held_back_last(graph, self.data, self.folder, MOST_CALIBRATED, MOST_JUDGED, FEWEST_JUDGED)
        calibrated, judged = self.shares(frozen, taught)
        result.is_proved = judged >= FEWEST_JUDGED
        self.reading = likeliest_scaling(
            frozen, whole, self.data, calibrated, self.reading, self.notify,
            labels=self.labels, outputs=self.outputs, threads=self.threads,
        )  # fmt: skip
        result.unknown += unseen(graph, judged if self.data is not None else None, is_held_back=taught > 0)
        forms = self.forms(frozen, calibrated)
        for form, make in forms.items():
            result.form = form
            try:
                result.steps += make(self.path(MODEL))
                if form != "float" and not holds_fewer_bits(self.path(MODEL)):
                    raise RunError("nothing in it is large enough to gain by fewer bits")
                kept, words = self.judged(told, calibrated, judged)
            except (RunError, UsageError) as error:
                if form == "float":
                    raise
                result.tried.append(Tried(form, False, str(error)))
                continue
            is_worse, worse = worse_than_floats(result, forms["float"], self.target) if kept else (False, "")
            words = f"{words}; {worse}" if worse else words
            if is_worse:
                kept, result.why_floats = False, result.why_floats or f"{SHIPPED_FORMS[form]}: {worse}"
            result.tried.append(Tried(form, kept, words, os.path.getsize(self.path(MODEL))))
            if kept:
                break
        if not kept and self.data is not None:
            result.doubt = result.doubt or f"not even floats keep the budget of {result.budget}: {words}"
        return self.finished(calibrated if judged else 0, judged)

    def shares(self, graph: Graph, taught: int) -> tuple[int, int]:
        """How many samples calibrate, those that retrain learned from where it is told, and how many judge."""
        if self.data is None:
            return 0, 0
        reading = SampleReading(**self.reading, notify=self.notify)
        opened = open_model(graph, outputs=self.outputs, threads=self.threads,
                            sizes=lambda graph, shapes: reading.sized(graph, shapes, self.data))  # fmt: skip
        audio, scaling = getattr(opened, "audio", None), reading.scaling(graph)
        data = reading.open(self.data, largest_inputs([opened]), scaling, audio)
        self.sizes = {} if text_inputs(graph, self.outputs) else {item.name: item.shape for item in opened.inputs}
        is_dense = answers_for_places(graph, self.outputs)
        if self.labels is None and judge_samples(self.names, data):  # else classes were in alphabetical order
            self.labels = self.path("labels.txt")
            write_labels(self.labels, self.names)
        if self.labels is None and self.most is None:
            self.numbers |= likely_numbers(graph, self.outputs, opened, data)
        names = None if self.labels is None else read_labels(self.labels)
        self.outputs = with_labelled_first(graph, self.outputs, opened, data, names)
        if names is not None:  # those that do not fit are said before the work
            opened = open_model(graph, outputs=self.outputs, threads=self.threads)
            check_labels(names, opened, data, self.outputs[0], is_dense=is_dense)
        calibrated = taught or min(MOST_DENSE if is_dense else MOST_CALIBRATED, math.ceil(len(data) * CALIBRATED_SHARE))
        if is_dense and len(data) > 2 * MOST_DENSE:
            self.notify(f"{2 * MOST_DENSE} of {len(data)} samples are used: the model answers for each of their places")
        return calibrated, min(len(data) - calibrated, MOST_DENSE if is_dense else MOST_JUDGED)

    def forms(self, graph: Graph, calibrated: int) -> dict[str, Make]:
        """How each form is made; without samples those that need none."""

        def quantized(mode: Any) -> Make:
            def make(path: str) -> Sequence[str]:
                static = mode == "static"
                most = self.allowed(graph) if static else None
                made = quantize(
                    graph, self.data, mode=mode, outputs=self.outputs, limit=max(calibrated, 1), labels=self.labels,
                    max_accuracy_drop=most, threads=self.threads, progress=self.progress, notify=self.notify,
                    resume=self.path(f"{mode}.resume.npz"), **self.reading,
                )  # fmt: skip
                made.name = self.result.model
                made.describe = partial(
                    described_file, graph, made.to_described_bytes, outputs=self.outputs,
                    labels=self.labels or self.names, reading=SampleReading(**self.reading), samples=self.data,
                )  # fmt: skip
                made.save(path, report=self.path("report.html") if static else None)
                return [note.removeprefix("warning: ") for note in made.notes]

            return make

        def exported(**how: Any) -> Make:
            def make(path: str) -> Sequence[str]:
                texts = self.data if text_inputs(graph, self.outputs) else None
                normalized = {name: self.reading[name] for name in ("preset", "input_mean", "input_std")}
                names = (self.labels or self.names) if takes_labels(graph, self.outputs[0]) else ()
                made = export(
                    graph, path, target="tflite", outputs=self.outputs, threads=self.threads, force=True,
                    shapes=self.sizes, labels=names, samples=texts, limit=MOST_CHECKED, **normalized, **how,
                )  # fmt: skip
                return list(made.notes)

            return make

        names = ("static", "dynamic", "weights") if self.data is not None else ("weights",)
        return {**{name: quantized(name) for name in names}, "float16": exported(mode="float16"),
                "float": exported()}  # fmt: skip

    def allowed(self, graph: Graph) -> float | None:
        """Percentage points that may be lost where the model chooses among classes or gives tags, as two samples tell:
        of right answers where the data say which are right, else of answers that stay."""
        how = EvaluationOptions(SampleReading(**self.reading), self.labels, 2, outputs=self.outputs)
        first, second = evaluate_with(how, [graph, graph], self.data or "")
        is_told = first.tags is not None or first.accuracy is not None
        has_classes = second.comparison is not None and second.comparison.has_classes
        if not is_told and (not has_classes or self.outputs[0] in self.numbers):
            return None
        return self.most if self.most is not None else LOST_ANSWERS if is_told else CHANGED_ANSWERS

    def judged(self, graph: Graph, calibrated: int, judged: int) -> tuple[bool, str]:
        """Whether the file in the folder keeps the budget, and its figures in words."""
        result, path = self.result, self.path(MODEL)
        if self.data is None:
            report = verify(self.path(FROZEN), path)
            least = min((output.snr for output in report.outputs if output.snr is not None), default=math.inf)
            result.budget = f"{SAFE_DECIBELS:g} dB on made-up inputs"
            result.unknown += [text for text in report.unproven if text not in result.unknown]
            self.problem = next((f"'{one.name}' {one.problem}" for one in report.outputs if one.problem), "")
            figures = self.problem or f"{noise_words(least)} on made-up inputs"
            return least >= SAFE_DECIBELS and not self.problem, figures
        models: list[Graph | str] = [graph, path]
        reading = SampleReading(**self.reading, notify=self.notify)
        options = EvaluationOptions(
            reading, self.labels, judged or None, calibrated if judged else 0, self.outputs,
            threads=self.threads, progress=self.progress,
        )  # fmt: skip
        found_all = evaluate_with(options, models, self.data)
        for note in found_all.notes:
            self.notify(note)
        before, after = found_all[0], found_all[1]
        result.unknown += [text for text in unsaid_scaling(found_all) if text not in result.unknown]
        is_judged = before.accuracy is not None or before.answers.are_varied or bool(before.not_finite)
        result.doubt = self.forgets or (before.doubt if is_judged else "")
        result.milliseconds = before.as_dict()["milliseconds"], after.as_dict()["milliseconds"]
        result.times_of = "the graph's took"
        main, *further = self.outputs
        found = {main: self.kept_answers(found_all, main)}
        for name in further if found[main].is_kept else ():
            first = [name, *(other for other in self.outputs if other != name)]  # each alone may need fewer inputs
            limit = min(judged or MOST_JUDGED_OTHERS, MOST_JUDGED_OTHERS)
            other = replace(options, labels=None, limit=limit, outputs=first, progress=silent, is_labelled=False)
            found[name] = self.kept_answers(evaluate_with(other, models, self.data), name)
        result.budget = found[main].budget
        result.unknown += [one.assumed for one in found.values() if one.assumed and one.assumed not in result.unknown]
        words = [one.words if name == main else f"'{name}': {one.words}" for name, one in found.items()]
        return all(one.is_kept for one in found.values()), "; ".join(words)

    def kept_answers(self, found: Evaluation, name: str) -> KeptAnswers:
        """Of the form, the second model that was evaluated, beside the float one."""
        return kept_answers(found[0], found[1], found.samples, most=self.most, assumed=self.numbers.get(name))

    def finished(self, skip: int, limit: int) -> Shipment:
        """Sums up, with what was judged of the samples, and writes the page and the state beside the model."""
        result = self.result
        result.sizes = model_bytes(self.source) or model_bytes(self.path(FROZEN)), os.path.getsize(self.path(MODEL))
        result.size_cause = size_cause(self.path(MODEL), self.path(FROZEN))
        write_labels(self.path("labels.txt"), self.app_names)
        paths = self.path(FROZEN), self.path(MODEL)
        result.app = write_text_files(*paths, self.folder, self.outputs, self.data, SampleReading(**self.reading))
        result.devices, unknown = device_times(*paths, self.outputs, self.target, result.form)
        options: dict[str, Any] = {"labels": self.labels, **self.reading, "skip": skip or None, "limit": limit or None}
        result.commands = [] if self.problem else [
            judging_command(self.folder, self.outputs, self.data, options)
        ]  # fmt: skip
        result.commands += file_commands(self.folder, self.outputs, self.target, is_ready=not result.doubt)
        boxes, unseen = self.boxes(self.outputs, paths, self.data, SampleReading(**self.reading), skip if limit else 0)
        result.unknown += filter(None, (unknown, unseen))
        write_atomically(self.path(PAGE), as_html(result, boxes).encode())
        names = sorted(os.listdir(self.folder))
        result.files = [name for name in names if name != STATE and not name.endswith(".resume.npz")]
        keep(result, self.key)
        return result
