"""Runs a float program on samples and keeps what values each of its tensors takes."""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantize.observe import Observation
from pocketgraph.quantize.operators import KINDS, Kind
from pocketgraph.quantize.options import Progress
from pocketgraph.quantize.reconstruct import BOUNDS
from pocketgraph.quantize.resume import Findings
from pocketgraph.quantize.running import Running, Samples

DONE = "samples"


def observe(
    program: Program,
    samples: Samples,
    count: int,
    tell: Progress,
    threads: int,
    findings: Findings | None = None,
    stage: str = "seen",
) -> dict[Value, Observation]:
    """What values every float tensor of the program takes.

    Args:
        program: the float program.
        samples, count: what to run it on.
        tell: how far it is.
        threads: how many threads to compute with.
        findings: where what was seen is kept from time to time, and taken from when there is some.
        stage: under what name.

    Raises:
        RunError: a value is not finite.
    """
    values = [value for value in program.inputs if value.dtype is FLOAT]
    values += [v for operation in program.operations for v in operation.outputs if v.dtype is FLOAT]
    bounds = {o.outputs[0]: BOUNDS[a] for o in program.operations if (a := o.options.get("activation")) in BOUNDS}
    derived = {v for o in program.operations if KINDS.get(o.code) is Kind.SAME for v in o.outputs}
    seen = {
        value: Observation(
            value.name,
            bounds.get(value, (-math.inf, math.inf)),
            is_derived=value in derived,
            is_input=value in program.inputs,
        )
        for value in values
    }
    kept = findings or Findings()
    before = kept.get(stage)
    passed = int(before[DONE]) if DONE in before else 0
    if passed:
        for index, value in enumerate(values):
            seen[value].restore({k: a for k in Observation.STATE if (a := before.get(f"{index}/{k}")) is not None})
    running = Running(program, values, threads) if passed < count else None

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
