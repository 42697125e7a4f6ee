"""The public door of quantization: its model describes itself in the file that is saved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.datasets.file_lists import check_is_there
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.sample_reading import Notify, SampleReading, unheard
from pocketgraph.graph import Graph
from pocketgraph.quantization.accuracy_budget import AccuracyBudget
from pocketgraph.quantization.canonical.canonicalize import needless_passes
from pocketgraph.quantization.core.quantization_options import (
    Activations,
    Form,
    InOut,
    Mode,
    Progress,
    QuantizationOptions,
    Ranges,
    Rounding,
    WeightType,
    check_together,
    silent,
)
from pocketgraph.quantization.quantization_steps import check_names
from pocketgraph.quantization.quantized_model import QuantizedModel
from pocketgraph.quantization.quantizer import Quantizer
from pocketgraph.quantization.stated_sizes import Sizes


def quantize(
    model: Graph | str | os.PathLike[str],
    samples: SampleSource | None = None,
    *,
    mode: Mode = "static",
    form: Form = "tflite",
    outputs: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    feeds: Mapping[str, Any] | None = None,
    signature: str | None = None,
    shapes: Sizes | None = None,
    limit: int = 100,
    judge: SampleSource | None = None,
    labels: str | os.PathLike[str] | Sequence[str] | None = None,
    max_kl: float | None = None,
    max_accuracy_drop: float | None = None,
    activations: Activations = "int8",
    weights: WeightType = "int8",
    io: InOut = "float",
    ranges: Ranges = "auto",
    rounding: Rounding = "fitted",
    equalize: bool = False,
    float_share: float = QuantizationOptions.float_share,
    widen: float = QuantizationOptions.widen,
    keep: Sequence[str] = (),
    without: Sequence[str] = (),
    preset: str | None = None,
    input_mean: float | None = None,
    input_std: float | None = None,
    input_width: int | None = None,
    input_height: int | None = None,
    sample_rate: int | None = None,
    threads: int = 1,
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> QuantizedModel:
    """Makes an eight-bit model of a float one.

    The samples show which values each tensor takes. Weights get a scale for each output channel and are fitted so that
    each layer gives what the float one gave. The same model, samples, options and seed give the same bytes.

    Args:
        model: a frozen graph, or a path: of one, or of the directory of a SavedModel or a training.
        samples: realistic inputs, without labels: a path (a folder of pictures or recordings, an ``.npz`` or ``.npy``
            file, a table, a list), or arrays by the inputs' names with samples along the first axis, or the only one.
        mode: ``static``: weights and tensors in eight bits. ``dynamic``: LiteRT quantizes tensors as they come.
            ``weights``: only those.
        form: what can be saved: ``tflite``, or ``pb`` for both (then in more operations, those of the graph).
        outputs, inputs: names of tensors; by default the model's own.
        feeds: what other placeholders are set to for good, such as ``{"keep_prob": 1.0}``.
        signature: of a SavedModel, the one that says what goes in and comes out; by default the main one.
        shapes: sizes of inputs that the model leaves open, by name, "" for the only one.
        limit: how many samples to calibrate with.
        judge: what the model is judged on; by default up to 200 of the samples after the first ``limit`` (without
            ``max_kl`` and ``max_accuracy_drop`` fewer of a model that takes long, but 30), else these.
        labels: the names of the classes, or the file that has one a line, for samples with classes.
        max_kl, max_accuracy_drop: what the model may lose: nats of divergence, percentage points of right answers.
            Layers stay in float until that is kept.
        activations, weights, io: the types of tensors, of weights, and of what goes in and out.
        ranges, rounding, equalize, float_share, widen, keep, without, seed: see ``QuantizationOptions``.
        preset, input_mean, input_std, input_width, input_height, sample_rate: see ``SampleReading``.
        threads: how many threads to compute with.
        resume: a file in which an interrupted call finds what it had; it is deleted when the model is saved.
        progress: told the stage, how many steps of it are done, and of how many.
        notify: told what is easily overlooked, a sentence each.

    Returns:
        The eight-bit model. ``save`` writes it, ``report`` says what each layer lost, ``judged`` what the model did.

    Raises:
        UsageError: there are no samples, something does not go together, or a name is of nothing.
        FormatError: a file is damaged.
        RunError: the budget cannot be kept, or samples or weights are not finite numbers.

    >>> import numpy as np, pocketgraph
    >>> from pocketgraph.graph import Graph, const
    >>> from pocketgraph.graph.text_format import parse
    >>> nodes = parse('''
    ...     x = Placeholder(dtype=float, shape=[?,16])
    ...     hidden = MatMul(x, a, T=float)
    ...     active = Relu(hidden, T=float)
    ...     y = MatMul(active, b, T=float)
    ... ''')
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(16, 64)), rng.normal(size=(64, 4))
    >>> graph = Graph([*nodes, const("a", a.astype(np.float32)), const("b", b.astype(np.float32))])
    >>> small = pocketgraph.quantize(graph, rng.normal(size=(40, 16)).astype(np.float32))
    >>> small.judged.comparison.snr > 30
    True
    >>> small.save("small.tflite", report="small.html")
    >>> [row.model for row in pocketgraph.evaluate([graph, "small.tflite"], rng.normal(size=(20, 16)))]
    ['graph', 'small.tflite']
    """
    tell = progress or silent
    types = {"activations": activations, "weights": weights, "io": io}
    of_static = {
        "max-kl": max_kl, "max-accuracy-drop": max_accuracy_drop, "judge": judge, "keep": list(keep) or None,
        "io": None if io == "float" else io, "activations": None if activations == "int8" else activations,
        "equalize": equalize or None, "ranges": None if ranges == "auto" else ranges,
    }  # fmt: skip
    check_together(form, mode, samples is not None, types, of_static)
    check_names(without)
    reading = SampleReading(preset, input_mean, input_std, input_width, input_height, sample_rate, notify or unheard)
    check_is_there(samples)
    check_is_there(judge)
    names = read_labels(labels) if isinstance(labels, (str, os.PathLike)) else labels
    way = Quantizer(
        model, samples, outputs or (), inputs or (), feeds or {}, reading, form,
        (*without, *needless_passes(io, activations)), signature, shapes, is_static=mode == "static",
    )  # fmt: skip
    if mode == "static":
        options = QuantizationOptions(
            ranges=ranges, rounding=rounding, equalize=equalize, io=io, keep=[*keep, *way.inner_operations()],
            float_share=float_share, widen=widen, activations=activations, weights=weights,
            with_tables=form == "tflite", without=way.without, threads=threads, seed=seed,
        )  # fmt: skip
        budget = AccuracyBudget(max_kl, max_accuracy_drop)
        made = way.quantized(options, budget, limit, judge, names, resume, tell)
    else:
        made = way.with_quantized_weights(
            limit, names, tell, dynamic=mode == "dynamic", bits=4 if weights == "int4" else 8, rounding=rounding,
            threads=threads,
        )  # fmt: skip
    made.describe = partial(_described, made, labels, replace(reading, notify=unheard), samples)
    return made


def _described(made: QuantizedModel, labels: Any, reading: SampleReading, samples: SampleSource | None) -> bytes | None:
    """The file with how pictures are scaled, where they are not scaled the usual way, as the nodes that told it are
    part of the first layer now; else None."""
    from pocketgraph.apps.file_metadata import described_file

    if reading.scaling(made.graph).mean is None:
        return None
    return described_file(
        made.graph, made.to_described_bytes, outputs=made.outputs, labels=labels, reading=reading, samples=samples
    )
