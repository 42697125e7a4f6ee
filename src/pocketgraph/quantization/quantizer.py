"""A float model and samples in, an eight-bit model out: what ``pocketgraph.quantize`` calls."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pocketgraph.datasets.class_labels import two_classes
from pocketgraph.datasets.class_scores import gives_actions, may_give_logits, outputs_of_numbers
from pocketgraph.datasets.evaluation_dataset import Dataset, own_answer
from pocketgraph.datasets.model_input import ModelInput, signature_keys
from pocketgraph.datasets.named_arrays import SampleSource, are_arrays
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.datasets.signature_choice import refuse_several_signatures
from pocketgraph.errors import option
from pocketgraph.formats import graphdef
from pocketgraph.freezing.ready_models import read_model
from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.two_threads import both
from pocketgraph.pages.quantities import counted
from pocketgraph.passes.partitioned_lookups import with_joined_tables
from pocketgraph.passes.training_switches import switches_note, training_switches
from pocketgraph.quantization.accuracy_budget import (
    AccuracyBudget,
    ProgramComparison,
    compare_programs,
    no_classes,
    quantize_within,
)
from pocketgraph.quantization.audio_preprocessing import audio_preprocessing_of, input_shapes
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.canonical.depthwise_affine import with_depthwise_affine
from pocketgraph.quantization.class_names import own_names_of
from pocketgraph.quantization.conversion.int8_conversion import left_in_float, take_pixels
from pocketgraph.quantization.conversion.layout_check import check_layouts, has_place
from pocketgraph.quantization.conversion.to_graphdef import inner_operations, steps_without_place, to_graphdef
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.evaluation.runnable_models import check_feeds
from pocketgraph.quantization.fitting.batch_norm_reach import told_other_reach
from pocketgraph.quantization.float_program import declared_sizes, in_float32, lowered_graph, with_feeds
from pocketgraph.quantization.quantized_model import QuantizedModel
from pocketgraph.quantization.ranges import trained_ranges
from pocketgraph.quantization.stated_sizes import Sizes, by_tensor, with_sizes
from pocketgraph.quantization.text_cut import text_preprocessing_of
from pocketgraph.quantization.text_inputs import of_heard_length, text_inputs
from pocketgraph.quantization.text_preprocessing import CHANGING, TextPreprocessing
from pocketgraph.quantization.weight_only import quantize_weights
from pocketgraph.runtime.comparison.answer_metrics import are_forecasts
from pocketgraph.runtime.comparison.tag_accuracy import are_tags
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_lengths
from pocketgraph.runtime.random_answers import without_dropout_left_on
from pocketgraph.version import VERSION

MOST_HELD_NUMBERS = 1 << 24
"""Numbers in all samples up to which they are kept in memory; more are read anew each time."""


class Quantizer:
    """A model on its way: its float program, lowered for the form that is asked for, and its samples."""

    def __init__(
        self,
        model: Graph | str | os.PathLike[str],
        samples: SampleSource | None,
        outputs: Sequence[str],
        inputs: Sequence[str],
        feeds: Mapping[str, Any],
        reading: SampleReading,
        form: str,
        without: tuple[str, ...],
        signature: str | None = None,
        stated: Sizes | None = None,
        *,
        is_static: bool = True,
    ) -> None:
        self.padding, self.signature = 0.0, signature
        self.model, self.source, self.reading, self.form, self.without = model, samples, reading, form, without
        if isinstance(model, Graph):
            graph = model
        else:
            graph = read_model(model, outputs, signature=signature, notify=reading.notify)
            if samples is not None and not (signature or outputs or inputs):
                refuse_several_signatures(graph, samples)
        refuse_finished(graph, "quantize")
        graph = with_joined_tables(graph)
        if note := trained_ranges.collapsed_ranges_note(graph):
            reading.notify(note)
        if form == "tflite":
            graph = trained_ranges.marked(graph)
        check_feeds(feeds, [graph])
        switches = training_switches(graph, [*feeds, *inputs])
        if switches:
            reading.notify(switches_note(switches))
            feeds = {**switches, **feeds}
        self.outputs = list(outputs) or outputs_of_numbers(graph, default_fetches(graph), reading.notify)
        graph = without_dropout_left_on(graph, self.outputs, reading.notify)
        graph = with_sizes(graph, self.outputs, by_tensor(graph, stated), tuple(feeds))
        self.audio = None if inputs else audio_preprocessing_of(graph, self.outputs, tuple(feeds))
        if not inputs and self.audio is None:
            graph = of_heard_length(graph, self.outputs, tuple(feeds), samples, reading)
        self.texts = None if inputs or self.audio is not None else self._text_preprocessing(graph, feeds)
        if self.audio is not None:
            shapes = dict(self.audio.shapes)
            reading.notify(f"the part behind {', '.join(shapes)} is quantized; what reads recordings is not")
        elif self.texts is not None:
            graph, shapes = self.texts.behind(), self.texts.shapes
            reading.notify(self.texts.words())
            if samples is not None:
                taken = reading.open(samples, self.texts.inputs, PictureScaling()).samples()
                self.padding = self.texts.change(self.outputs, taken)
        else:
            shapes = input_shapes(graph, self.outputs, inputs, tuple(feeds))
        has_pictures = samples is not None and not are_arrays(samples) and self.texts is None
        self.scaling = reading.scaling(graph if has_pictures else None, inputs)
        if self.audio is None and self.texts is None:
            shapes = reading.sized(graph, shapes, samples)
            is_fixed = samples is None or (form == "tflite" and are_arrays(samples))  # of files the reading tells
            if is_fixed and (lengths := synthetic_lengths(graph, shapes, self.outputs, of_any_size=True)):
                sizes = ", ".join(f"{list(shapes[name])} for '{name}'" for name in lengths)
                how = (
                    f"; samples tell them, or {option('input_shape', 'shapes')}"
                    if samples is None
                    else ", as samples have"
                )
                declared = [declared_sizes(graph, name, shapes[name]) for name in lengths]
                has_rows = form == "tflite" and any(len(dims) > 1 and dims[0] is None for dims in declared)
                rows = " but for the batch" if has_rows else ""
                reading.notify(f"the model leaves sizes open, and the file has {sizes}{rows}{how}")
        self.program, self.graph = lowered_graph(graph, self.outputs, shapes, feeds, for_all_sizes=form != "tflite")
        if form != "tflite":
            self.graph = in_float32(self.graph)
        self.graphs = (graph, self.graph)
        if form == "tflite":
            # where tensors stay floats, nothing is in the way of an infinity
            self.program = canonicalize(self.program, without if is_static else (*without, "finite_masks"))
        else:
            # what it does not hold is said before the work
            written = to_graphdef(self.program, self.graph, self.outputs)
            check_layouts(written, self.graph, self.program.inputs, self.outputs)
            if not has_place(with_depthwise_affine(self.program), self.graph, self.outputs):
                self.without += ("depthwise_affine",)
            self.without += steps_without_place(self.program, self.graph, reading.notify)
        self.values = dict(feeds)
        self.asked = repr((self.outputs, self.scaling, dict(feeds), tuple(inputs), dict(stated or {})))

    def inner_operations(self) -> list[str]:
        """What has to stay in float because the form that is written has no place for its codes."""
        if self.form == "tflite":
            return []
        is_changed = "depthwise_affine" not in self.without
        return inner_operations(with_depthwise_affine(self.program) if is_changed else self.program, self.graph)

    def opened(self, source: SampleSource | None) -> Dataset:
        """Samples for the float program."""
        assert source is not None
        if self.texts is not None:
            data = self.reading.open(source, self.texts.inputs, self.scaling)
            data.behind_texts = self.texts
            return data
        rate = model_sample_rate(self.graphs[0])
        taken = tuple(
            ModelInput(v.name, v.shape, np.dtype(v.dtype.numpy), rate=rate, keys=signature_keys(self.graphs[0], v.name))
            for v in self.program.inputs
        )
        return self.reading.open(source, taken, self.scaling, self.audio)

    def _text_preprocessing(self, graph: Graph, feeds: Mapping[str, Any]) -> TextPreprocessing | None:
        """What reads texts in front of the part to quantize; None where nothing does."""
        taken = text_inputs(graph, self.outputs, tuple(feeds))
        if not taken:
            return None
        texts = self.reading.open(self.source, taken, PictureScaling()).samples() if self.source is not None else ()
        return text_preprocessing_of(graph, self.outputs, tuple(feeds), texts, values=feeds)

    def held(self, data: Dataset) -> Samples:
        """The samples, in memory when they are few."""
        if len(data) * sum(value.size for value in self.program.inputs) >= MOST_HELD_NUMBERS:
            return data.samples
        held = list(data.samples())
        return lambda: iter(held)

    def with_quantized_weights(
        self, limit: int, names: Sequence[str] | None, progress: Progress, *, dynamic: bool, bits: int, rounding: str,
        threads: int,
    ) -> QuantizedModel:  # fmt: skip
        data = self.opened(self.source).take(limit) if self.source is not None else None
        samples: Samples = self.held(data) if data is not None else lambda: iter(())
        outcome = quantize_weights(
            self.program, samples, 0 if data is None else len(data), dynamic=dynamic, graphs=self.graphs,
            bits=bits, with_tables=self.form == "tflite", rounding=rounding, threads=threads, progress=progress,
        )  # fmt: skip
        outcome.are_forecasts = names is None and gives_actions(self.graphs[0], self.outputs[0])
        if data is not None and (
            other := told_other_reach(self.program, self.graphs, samples, are_pictures=data.are_pictures)
        ):
            outcome.notes.insert(0, other)
        return self.made(outcome, None, threads, progress)

    def quantized(
        self,
        options: QuantizationOptions,
        budget: AccuracyBudget,
        limit: int,
        judge: SampleSource | None,
        names: Sequence[str] | None,
        resume: str | os.PathLike[str] | None,
        progress: Progress,
    ) -> QuantizedModel:
        everything = self.opened(self.source)
        data = everything.take(limit)
        self.reading.mention(data)
        judging = self._judging(judge, everything, data, has_limit=budget.is_set)
        if names is None:
            names = own_names_of(
                self.model, self.graphs[0], self.outputs[0], judging, self.signature, self.reading.notify
            )
        output = self.program.outputs[0]
        of_two = two_classes(everything.classes if judge is None else judging.classes, names)
        is_single = output.size == judging.repetitions == 1 and output.dtype is FLOAT and of_two is not None
        names = of_two if is_single else names
        gives_forecasts, tags = self._kinds(judging, names)
        if gives_forecasts and budget.is_set and (tags is None or budget.kl is not None):
            raise no_classes()
        key, samples = both(
            lambda: self.key(options, data) if resume is not None else "", lambda: self.held(data), options.threads
        )
        kept = ResumeState(resume, key)
        if kept.resumed:
            self.reading.notify("going on from an interrupted call")

        def judged(outcome: QuantizationState) -> ProgramComparison:
            left_out = outcome.left_out if judging is data else ()
            used = judging.without(left_out)
            outcome.are_forecasts = gives_forecasts
            return compare_programs(
                outcome,
                used.samples,
                len(used),
                lambda scores: used.truth(names, scores),
                options.threads,
                used.repetitions,
                tags=None if tags is None else np.delete(tags, left_out, axis=0),
                may_be_logits=may_give_logits(self.graphs[0], self.outputs[0]) if is_single else None,
            )

        with kept.kept_when_stopped():
            outcome, found = quantize_within(
                self.program, samples, len(data), options, budget, judged, progress, kept, of_two=is_single
            )
            other = told_other_reach(self.program, self.graphs, samples, are_pictures=data.are_pictures)
        if options.io == "uint8" and data.are_pictures:
            take_pixels(outcome.converted.program, *data.pixel_scaling)
        if other:
            outcome.notes.insert(0, other)
        outcome.judged, outcome.are_unseen = found.comparison, judging is not data
        seen = f"that it was calibrated with ({found.of_known_samples()})"
        which = "that it had not seen" if outcome.are_unseen else seen
        told = [
            *found.warnings(self.outputs),
            f"on {counted(found.comparison.count, 'sample')} {which}: {found.words()}",
        ]
        warned = sum(note.startswith("warning:") for note in outcome.notes)
        outcome.notes[warned:warned] = told
        ends = [*(value.name.removesuffix(":0") for value in self.program.inputs), *self.outputs]
        outcome.notes += left_in_float(outcome.converted.program, ends, options.io)
        return self.made(outcome, found, options.threads, progress, kept)

    def _judging(self, judge: SampleSource | None, everything: Dataset, data: Dataset, *, has_limit: bool) -> Dataset:
        """The samples to judge with: those given for it, else what calibration leaves, else those of calibration."""
        if judge is not None:
            return self.opened(judge)
        if len(everything) <= len(data):
            return data
        return everything.after(len(data)).take(
            step_limits.judged_samples(self.program.operations, has_limit=has_limit)
        )

    def _kinds(self, judging: Dataset, names: Sequence[str] | None) -> tuple[bool, Array | None]:
        """Whether the first output is of numbers, as samples tell or a tanh without classes, and their tags, if any.

        Raises:
            UsageError: labels do not fit.
        """
        output = self.program.outputs[0]
        if output.size <= 1:
            return False, None
        answer = own_answer(np.empty(output.shape, output.dtype.numpy), judging.repetitions)
        classes = judging.truth(names, answer.size)
        wanted = judging.wanted(answer.size) if classes is None else None
        if wanted is None:
            return names is None and classes is None and gives_actions(self.graphs[0], self.outputs[0]), None
        return are_forecasts(wanted, answer), wanted if are_tags(wanted, answer) else None

    def made(
        self,
        outcome: QuantizationState,
        judged: ProgramComparison | None,
        threads: int,
        progress: Progress,
        resume: ResumeState | None = None,
    ) -> QuantizedModel:
        if self.padding > CHANGING and self.texts is not None:
            outcome.notes.insert(0, (
                f"warning: {self.texts.sized()}, which changes results by up to {self.padding:.0%} of the largest, as "
                f"longer ones lose their ends{self.texts.open_elsewhere()}"
            ))  # fmt: skip
        name = "graph" if isinstance(self.model, Graph) else os.path.basename(os.path.normpath(os.fspath(self.model)))
        graph = self.graphs[0]
        sizes = [declared_sizes(graph, value.name, value.shape) for value in self.program.inputs]
        source = with_feeds(graph, self.values), [each[:1] == (None,) for each in sizes]
        return QuantizedModel(
            name, outcome, self.program, self.graph, self.outputs, outcome.samples, self.form, judged, threads,
            self.without, progress, resume or ResumeState(), source,
        )  # fmt: skip

    def key(self, options: QuantizationOptions, data: Dataset) -> str:
        """What the state of an interrupted call must be of, to be of use to this one: on any number of threads."""
        digest = hashlib.sha256()
        for chunk in graphdef.chunks(self.graphs[0]):
            digest.update(chunk)
        digest.update(repr((VERSION, replace(options, threads=1), self.asked, data.identity())).encode())
        return digest.hexdigest()
