"""Runs a float program on samples and keeps what values each of its tensors takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from pocketgraph import cluster
from pocketgraph.errors import RunError, option
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.activation_fusion import ACTIVATION_BOUNDS
from pocketgraph.quantization.canonical.masked_values import masked_borders
from pocketgraph.quantization.core.layerwise_execution import ShownProgram, groups_to_show
from pocketgraph.quantization.core.masked_scores import normalized_scores, without_masks
from pocketgraph.quantization.core.observation import Observation, TensorSummary
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule
from pocketgraph.quantization.core.program_runner import Sample, Samples, Views, look_at
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
    *,
    keeps_floats: bool = False,
) -> dict[Value, Observation]:
    """What values every float tensor of the program takes.

    Args:
        program: the float program.
        samples, count: what to run it on.
        tell: how far it is.
        threads: how many threads to compute with.
        resume: where what was seen is kept from time to time, and taken from when there is some.
        stage: under what name.
        keeps_floats: whether tensors stay floats, so that NaN may be what the program itself looks for.

    Raises:
        RunError: a value is not finite.
    """
    looks_for_nan = any(o.code == "NOT_EQUAL" and o.inputs[0] is o.inputs[1] for o in program.operations)
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
        )
        for value in values
    }
    kept = resume or ResumeState()
    before = kept.get(stage)
    passed = int(before[DONE]) if DONE in before else 0
    if passed:
        for index, value in enumerate(values):
            seen[value].restore({k: a for k in Observation.STATE if (a := before.get(f"{index}/{k}")) is not None})
    job = _Observing(program, values, [seen[value] for value in values], threads, looks_for_nan and keeps_floats)

    def keep(done: int) -> None:
        state = {f"{index}/{k}": a for index, value in enumerate(values) for k, a in seen[value].state().items()}
        kept.put(stage, {DONE: np.array(done), **state})

    if passed < count:
        left = islice(enumerate(samples()), passed, None)
        if cluster.current() is None:
            steps = map(job.added, left)
        else:
            steps = map(job.taken, cluster.map_in_order(job, left))
        try:
            for done, _ in enumerate(steps, passed + 1):
                tell("calibrating", done, count)
                if kept.is_due():
                    keep(done)
        except RunError as error:
            if not looks_for_nan or keeps_floats:
                raise
            weights = f"{option('mode')}=weights"
            hint = f"the model looks for NaN, as for missing values, and codes have none: {weights} keeps it"
            raise RunError(error.what, where=error.where, hint=hint) from error
        keep(count)
    return seen | {padded: seen[source] for padded, source in masked_borders(program) if source in seen}


class _Observing:
    """A program on samples: seen here, or on the workers of a cluster and taken in here."""

    def __init__(
        self,
        program: Program,
        values: Sequence[Value],
        observations: Sequence[Observation],
        threads: int,
        passes_over_nan: bool = False,
    ) -> None:
        self._passes_over_nan = passes_over_nan
        self._program, self._values, self._observations, self._threads = program, values, observations, threads
        self._normalized = normalized_scores(program)
        self._running: ShownProgram | None = None

    def added(self, item: tuple[int, Sample]) -> bool:
        """Runs a sample and takes it in."""
        seen = dict(zip(self._values, self._observations, strict=True))
        self._visit(item[1], lambda value, views: seen[value].add(self._shown(value, views)))
        return True

    def taken(self, row: Sequence[TensorSummary | None]) -> bool:
        """Takes in what a worker saw of the next sample."""
        for observation, summary in zip(self._observations, row, strict=True):
            if summary is not None:
                observation.take(summary)
        return True

    def __call__(self) -> Callable[[tuple[int, Sample]], list[TensorSummary | None]]:
        """Opens it on a worker."""
        place = {value: index for index, value in enumerate(self._values)}

        def row(item: tuple[int, Sample]) -> list[TensorSummary | None]:
            number, sample = item
            found: list[TensorSummary | None] = [None] * len(place)

            def look(value: Value, views: Views) -> None:
                array, observation = self._shown(value, views), self._observations[place[value]]
                observation.samples = number
                found[place[value]] = observation.summary(array) if array.size else None

            self._visit(sample, look)
            return found

        return row

    def _shown(self, value: Value, views: Views) -> Array:
        shown = without_masks(views[value]) if value in self._normalized else views[value]
        return np.nan_to_num(shown, nan=0.0, posinf=np.inf, neginf=-np.inf) if self._passes_over_nan else shown

    def _visit(self, sample: Sample, look: Callable[[Value, Views], None]) -> None:
        """Runs a sample, and shows each tensor."""
        if self._running is None:
            groups = groups_to_show(self._program, [[value] for value in self._values])
            self._running = ShownProgram(self._program, groups, self._threads)
        for views in self._running.views(sample):
            look_at(views, look, self._threads)

    def __getstate__(self) -> dict[str, Any]:
        """Without what runs: a worker has its own, on one core, and observations of nothing yet."""
        blank = [Observation(one.name, one.bounds, is_derived=one.is_derived) for one in self._observations]
        return {**self.__dict__, "_running": None, "_threads": 1, "_observations": blank}


def calibrate(state: QuantizationState) -> bool:
    """The step: observes all samples, and says what is odd about them."""
    reobserve(state, "seen")
    state.notes += warnings(state.program, state.seen, state.samples, state.count)
    return True


def reobserve(state: QuantizationState, stage: str) -> None:
    """Observes all tensors of the program as it is; ``stage`` is what an interrupted run finds them by."""
    options = state.options
    state.seen = observe(
        state.program, state.samples, state.count, state.progress, options.threads, state.resume, stage
    )


def observe_tensors(state: QuantizationState, program: Program, values: Sequence[Value]) -> dict[Value, Observation]:
    """What was seen, with these tensors of a changed program observed as well."""
    found = observe(subprogram(program, values), state.samples, state.count, silent, state.options.threads)
    return {**state.seen, **found}
