"""The whole way from a float program and samples to an eight-bit one, and what was found on it."""

from __future__ import annotations

from pocketgraph.errors import UsageError
from pocketgraph.litert.program import Program
from pocketgraph.quantization import quantization_steps
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.resume_state import ResumeState


def quantize_program(
    program: Program,
    samples: Samples,
    count: int,
    options: QuantizationOptions,
    progress: Progress | None = None,
    resume: ResumeState | None = None,
) -> QuantizationState:
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


def finish(analyzed: QuantizationState, options: QuantizationOptions) -> QuantizationState:
    """Decides what stays in float, finds the weights' codes and rewrites the program.

    Args:
        analyzed: what ``analyze`` gave; it stays as it is.
        options: those that it was analyzed with, or others for what is decided now.
    """
    state = analyzed.branch(options)
    quantization_steps.run_steps(state, quantization_steps.CONVERSION_STEPS)
    return state
