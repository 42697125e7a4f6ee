"""Leaves samples out that reach many times as far as all others: one would take the codes of everything else.

A photo that was scaled otherwise, or a row with a number that stands for "missing", is enough for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from pocketgraph.errors import option
from pocketgraph.litert.program import Program, Value
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.program_runner import Sample, Samples
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.observing.calibration import reobserve


def outliers(program: Program, seen: Mapping[Value, Observation]) -> tuple[list[int], str]:
    """Which samples to leave out, and a sentence about it; empty where all are alike.

    Args:
        program: the float program.
        seen: what values its inputs took, with how far each sample reached.
    """
    found: dict[int, tuple[float, str]] = {}
    total = 0
    for value in program.inputs:
        peaks = np.asarray(seen[value].peaks if value in seen else ())
        total = max(total, peaks.size)
        usual = float(np.quantile(peaks, 0.9)) if peaks.size >= step_limits.FEWEST_SAMPLES else 0.0
        if usual > 0:
            found.update(
                (int(at), (peaks[at] / usual, value.name))
                for at in np.flatnonzero(peaks > step_limits.OUTLIER_REACH * usual)
            )
    if not found or len(found) > step_limits.MOST_OUTLIERS_SHARE * total:
        return [], ""
    times, name = max(found.values())
    numbers = ", ".join(str(at + 1) for at in sorted(found)[:5]) + (", …" if len(found) > 5 else "")
    text = (
        f"warning: {len(found)} of {counted(total, 'sample')} (number {numbers}) reach up to "
        f"{times:.0f} times as far as the "
        f"others in '{name}' and were left out; check how they are scaled, or keep them with {option('ranges')}=minmax"
    )
    return sorted(found), text


def without(samples: Samples, left_out: Collection[int]) -> Samples:
    """The samples but those of these numbers, from 0."""
    if not left_out:
        return samples

    def rest() -> Iterable[Sample]:
        return (sample for at, sample in enumerate(samples()) if at not in left_out)

    return rest


def leave_out_outliers(state: QuantizationState) -> bool:
    """The step: samples that are outliers are left out from here on, and the rest observed anew."""
    left_out, warning = outliers(state.program, state.seen)
    if not left_out:
        return False
    state.notes.append(warning)
    state.left_out, state.count = left_out, state.count - len(left_out)
    state.samples = without(state.samples, left_out)
    reobserve(state, "seen without outliers")
    return True
