"""Runs a float program on samples and keeps what values each of its tensors takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.activations import ACTIVATION_BOUNDS
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule
from pocketgraph.quantization.core.program_runner import ProgramRunner, Samples
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.observing.calibration_checks import warnings
from pocketgraph.quantization.program_pass import subprogram

DONE = "samples"


def observe(
    program: Program,
    samples: Samples,
    count: int,
    tell: Progress,
    threads: int,
    resume: ResumeState | None = None,
    stage: str = "seen",
) -> dict[Value, Observation]:
    """What values every float tensor of the program takes.

    Args:
        program: the float program.
        samples, count: what to run it on.
        tell: how far it is.
        threads: how many threads to compute with.
        resume: where what was seen is kept from time to time, and taken from when there is some.
        stage: under what name.

    Raises:
        RunError: a value is not finite.
    """
    values = [value for value in program.inputs if value.dtype is FLOAT]
    values += [v for operation in program.operations for v in operation.outputs if v.dtype is FLOAT]
    bounds = {
        o.outputs[0]: ACTIVATION_BOUNDS[a]
        for o in program.operations
        if (a := o.options.get("activation")) in ACTIVATION_BOUNDS
    }
    derived = {v for o in program.operations if OPERATOR_RULES.get(o.code) is OperatorRule.SAME for v in o.outputs}
    seen = {
        value: Observation(
            value.name,
            bounds.get(value, (-math.inf, math.inf)),
            is_derived=value in derived,
            is_input=value in program.inputs,
        )
        for value in values
    }
    kept = resume or ResumeState()
    before = kept.get(stage)
    passed = int(before[DONE]) if DONE in before else 0
    if passed:
        for index, value in enumerate(values):
            seen[value].restore({k: a for k in Observation.STATE if (a := before.get(f"{index}/{k}")) is not None})
    running = ProgramRunner(program, values, threads) if passed < count else None

    def keep(done: int) -> None:
        state = {f"{index}/{k}": a for index, value in enumerate(values) for k, a in seen[value].state().items()}
        kept.put(stage, {DONE: np.array(done), **state})

    for done, sample in enumerate(samples(), 1):
        if running is None:
            break
        if done <= passed:
            continue
        running.visit(sample, lambda value, array: seen[value].add(array))
        tell("calibrating", done, count)
        if kept.is_due():
            keep(done)
    if running is not None:
        keep(count)
    return seen


def calibrate(state: QuantizationState) -> bool:
    """The step: observes all samples, and says what is odd about them."""
    observe_again(state, "seen")
    state.notes += warnings(state.program, state.seen, state.samples, state.count)
    return True


def observe_again(state: QuantizationState, stage: str) -> None:
    """Observes all tensors of the program as it is; ``stage`` is what an interrupted run finds them by."""
    options = state.options
    state.seen = observe(
        state.program, state.samples, state.count, state.progress, options.threads, state.resume, stage
    )


def observe_tensors(state: QuantizationState, program: Program, values: Sequence[Value]) -> dict[Value, Observation]:
    """What was seen, with these tensors of a changed program observed as well."""
    found = observe(subprogram(program, values), state.samples, state.count, silent, state.options.threads)
    return {**state.seen, **found}
