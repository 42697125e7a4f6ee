"""What each step of quantization brings: every model of the catalogue with it and without it.

    python benchmarks/quantization_steps.py FOLDER [--only photos pictures digits mnist keywords] [--steps NAME …]
        [--models NAME …] [--samples 100] [--judged 200] [--activations int8] [--each]

FOLDER and the kinds of models are those of quantized_accuracy.py, which says where the samples come from. Each model is
quantized with the defaults, and again without each step and pass that changed anything in it; figures are of samples
that were not calibrated with. The table has a row a step: in how many models it changed the file, and what the
eight-bit models lose, gain or cost *without* it: signal to noise and divergence (means over these models), bytes and
time of one sample (geometric means of the ratios, measured in turn, so that a drifting machine drifts for both), and
the time that quantizing takes. ``--each`` prints the models one by one as well.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from measure import table
from pocketgraph.errors import PocketgraphError
from pocketgraph.litert.program import Program
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.quantization.canonical.canonicalize import CANONICAL_PASSES, canonicalize
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import Activations, QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.quantization_steps import optional_names
from pocketgraph.quantization.serialization.tflite_bytes import FILE_PASSES, model_bytes
from quantized_accuracy import KINDS, Case, compare

TURNS, SLICE_SECONDS = 15, 0.02
HEADER = ("without", "files changed", "SNR dB", "KL", "agreement", "bytes", "time", "to quantize", "most in")


@dataclass
class Made:
    """A quantized model: its program, its file, what it is like, and what became of each step.

    Attributes:
        seconds: that quantizing took.
    """

    program: Program
    content: bytes
    snr: float
    kl: float
    agreement: float
    seconds: float
    steps: dict[str, str]


@dataclass
class Difference:
    """What a model is like without a step, beside the one with it; ratios are of the former to the latter."""

    model: str
    snr: float
    kl: float
    agreement: float
    size: float
    time: float
    quantizing: float


class Model:
    """A model of the catalogue with its samples, split into those to calibrate with and others."""

    def __init__(self, case: Case, count: int, judged: int, activations: Activations) -> None:
        self.case, self.activations = case, activations
        order = (
            np.random.default_rng(0).permutation(len(case.samples)) if case.is_split else np.arange(len(case.samples))
        )
        self.rest = order[count : count + judged]
        self.held = [[np.ascontiguousarray(case.samples[index])] for index in order[:count]]
        output = [case.output] if case.output else None
        source = case.source or lowered_graph(case.graph, output, None, case.values)[0].inputs[0].name
        self.lowered, _ = lowered_graph(case.graph, output, {source: case.samples.shape[1:]}, case.values)

    def made(self, without: tuple[str, ...] = ()) -> Made:
        program = canonicalize(self.lowered, without)
        start = time.perf_counter()
        outcome: QuantizationState = quantize_program(
            program, lambda: iter(self.held), len(self.held),
            QuantizationOptions(without=without, activations=self.activations),
        )  # fmt: skip
        seconds = time.perf_counter() - start
        coded = outcome.converted.program
        comparison, _ = compare(self.case, self.rest, ProgramRunner(program), ProgramRunner(coded), coded.inputs)
        agreement = comparison.agreement if comparison.width > 1 else math.nan
        kl = comparison.kl if comparison.width > 1 else math.nan
        content = model_bytes(coded, without)
        return Made(coded, content, comparison.snr, kl, agreement, seconds, dict(outcome.done))

    def names(self, whole: Made) -> Iterator[str]:
        """The steps and passes that may have changed something."""
        canonical = {each.name for each in CANONICAL_PASSES}
        files = {each.name for each in FILE_PASSES}
        before = shape(canonicalize(self.lowered))
        for name in optional_names():
            if name in canonical:
                is_used = shape(canonicalize(self.lowered, (name,))) != before
            elif name in files:
                is_used = model_bytes(whole.program, (name,)) != whole.content
            else:
                is_used = whole.steps.get(name) == "done"
            if is_used:
                yield name


def shape(program: Program) -> list[Any]:
    """What tells programs apart that were rewritten from the same one."""
    operations = program.operations
    return [(o.code, repr(sorted(o.options.items())), *(v and (v.name, v.shape) for v in o.inputs)) for o in operations]


def ratio(model: Model, made: Made, whole: Made) -> float:
    """The time of a sample without the step over that with it."""
    runners = [PlainRunner(content, 1) for content in (made.content, whole.content)]
    least = [math.inf, math.inf]
    for _ in range(TURNS):
        for at, runner in enumerate(runners):
            least[at] = min(least[at], runner.seconds(model.held[0], SLICE_SECONDS, 50))
    return least[0] / least[1]


def differences(model: Model, wanted: tuple[str, ...]) -> Iterator[tuple[str, Difference]]:
    """Each step that changes the model's file, and what it brings."""
    whole = model.made()
    for name in model.names(whole):
        if wanted and name not in wanted:
            continue
        try:
            made = model.made((name,))
        except PocketgraphError as error:
            print(f"{model.case.name} without {name}: {error}")
            continue
        if made.content != whole.content:
            yield name, Difference(
                model.case.name, made.snr - whole.snr, made.kl - whole.kl, made.agreement - whole.agreement,
                len(made.content) / len(whole.content), ratio(model, made, whole), made.seconds / whole.seconds,
            )  # fmt: skip


def row(name: str, found: list[Difference], models: int) -> tuple[str, ...]:
    def mean(values: list[float]) -> float:
        known = [value for value in values if math.isfinite(value)]
        return statistics.fmean(known) if known else math.nan

    def scale(values: list[float]) -> str:
        return f"{math.exp(mean([math.log(value) for value in values])):.3f} x"

    worst = min(found, key=lambda each: each.snr)
    return (
        name, f"{len(found)} of {models}", f"{mean([each.snr for each in found]):+.2f}",
        f"{mean([each.kl for each in found]):+.5f}", f"{100 * mean([each.agreement for each in found]):+.2f} %",
        scale([each.size for each in found]), scale([each.time for each in found]),
        scale([each.quantizing for each in found]), f"{worst.model} ({worst.snr:+.1f} dB)",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", choices=tuple(KINDS), default=list(KINDS))
    parser.add_argument("--steps", nargs="*", choices=optional_names(), default=[], metavar="NAME")
    parser.add_argument("--models", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--judged", type=int, default=200)
    parser.add_argument("--activations", choices=("int8", "int16"), default="int8")
    parser.add_argument("--each", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, list[Difference]] = {}
    models = 0
    for kind in arguments.only:
        for case in KINDS[kind](arguments.folder):
            if arguments.models and case.name not in arguments.models:
                continue
            models += 1
            model = Model(case, arguments.samples, arguments.judged, arguments.activations)
            for name, difference in differences(model, tuple(arguments.steps)):
                found.setdefault(name, []).append(difference)
                if arguments.each:
                    print(f"{case.name} {row(name, [difference], 1)}", flush=True)
    rows = [row(name, found[name], models) for name in optional_names() if name in found]
    table("What eight-bit models are like without a step", HEADER, rows)
    print(f"\nno file changed by: {', '.join(name for name in optional_names() if name not in found)}")


if __name__ == "__main__":
    main()
