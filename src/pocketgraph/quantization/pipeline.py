"""The whole way from a float program and samples to an eight-bit one, and what was found on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pocketgraph.errors import UsageError
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization import quantization_steps
from pocketgraph.quantization.core.conversion_recipe import ConvertedProgram
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.runtime.comparison.answer_metrics import Comparison


@dataclass
class Outcome:
    """A quantized program and what is known of it.

    Attributes:
        exact: the float program that it was made from, with its channels as the steps have left them.
        converted: the eight-bit program.
        seen, ranges, sensitivity, kept, hybrid, weights, notes: see QuantizationState.
        rounding: how the weights' codes were chosen; see QuantizationOptions.
        steps: what became of each step, by its name.
        judged: the first outputs beside those of the float program, on all samples that it was judged on.
        are_unseen: whether those are others than it was calibrated with.
        halves: the layers that have float16 weights instead of codes.
    """

    exact: Program
    converted: ConvertedProgram
    seen: Mapping[Value, Observation]
    ranges: Mapping[Value, Range] = field(default_factory=dict)
    sensitivity: Mapping[Value, float] = field(default_factory=dict)
    kept: list[Operation] = field(default_factory=list)
    hybrid: list[Operation] = field(default_factory=list)
    weights: Mapping[Operation, QuantizedWeights] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rounding: str = "nearest"
    steps: Mapping[str, str] = field(default_factory=dict)
    judged: Comparison | None = None
    are_unseen: bool = False
    halves: Sequence[Operation] = ()


def quantize_program(
    program: Program,
    samples: Samples,
    count: int,
    options: QuantizationOptions,
    progress: Progress | None = None,
    resume: ResumeState | None = None,
) -> Outcome:
    """Quantizes a float program with the help of samples.

    Args:
        program: the float program; it stays as it is.
        samples: realistic inputs, without labels.
        count: how many samples there are.
        options: see there.
        progress: told how far it is.
        resume: of an interrupted run, with the same arguments, from which to go on.

    Raises:
        UsageError: there are no samples, nothing to quantize, ``keep`` names no tensor of the program, or ``without``
            no step.
        RunError: a sample has values that are not finite, or leads to some, or weights are not.
    """
    return finish(analyze(program, samples, count, options, progress, resume), options)


def analyze(
    program: Program,
    samples: Samples,
    count: int,
    options: QuantizationOptions,
    progress: Progress | None = None,
    resume: ResumeState | None = None,
) -> QuantizationState:
    """Calibrates, chooses ranges, and measures what each tensor's codes do to the scores; as ``quantize_program``."""
    quantization_steps.check_names(options.without)
    if count < 1:
        raise UsageError("there is no sample to calibrate with", hint="give at least a few, better 100")
    state = QuantizationState(program, samples, count, options, progress or silent, resume or ResumeState())
    quantization_steps.run_steps(state, quantization_steps.ANALYSIS_STEPS)
    return state


def finish(analyzed: QuantizationState, options: QuantizationOptions) -> Outcome:
    """Decides what stays in float, finds the weights' codes and rewrites the program.

    Args:
        analyzed: what ``analyze`` gave; it stays as it is.
        options: those that it was analyzed with, or others for what is decided now.
    """
    state = analyzed.branch(options)
    quantization_steps.run_steps(state, quantization_steps.CONVERSION_STEPS)
    assert state.converted is not None
    return Outcome(
        state.program, state.converted, state.seen, state.ranges, state.sensitivity, state.kept, state.hybrid,
        state.weights, notes=state.notes, rounding=state.options.rounding, steps=state.done,
    )  # fmt: skip
