"""The whole way from a float program and samples to an eight-bit one, and what was found on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import UsageError
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.canonical.depthwise_affine import with_depthwise_affine
from pocketgraph.quantization.channels.channel_equalization import equalize_channels
from pocketgraph.quantization.channels.channel_replication import replicate_channels
from pocketgraph.quantization.channels.cross_layer_equalization import equalize_across_layers
from pocketgraph.quantization.channels.input_equalization import equalize_input
from pocketgraph.quantization.conversion.constant_compression import with_compressed_constants
from pocketgraph.quantization.conversion.int8_conversion import (
    ConversionRecipe,
    ConvertedProgram,
    convert,
    quantized_operations,
    shared_quantization,
)
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule, is_layer, is_table
from pocketgraph.quantization.core.program_runner import Array, Samples, subprogram
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.evaluation.metrics import Comparison
from pocketgraph.quantization.fitting.weight_fitting import fit_weights
from pocketgraph.quantization.mixed_precision.float_layers import float_ends, last_normalizations, named, preparation
from pocketgraph.quantization.mixed_precision.float_partition import faster_in_float
from pocketgraph.quantization.mixed_precision.recurrent_layers import recurrent
from pocketgraph.quantization.mixed_precision.sensitivity import (
    SensitivityAnalysis,
    decibels,
    most_sensitive_stretch,
    multiplications,
)
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.observing.calibration_checks import check_weights, warnings
from pocketgraph.quantization.observing.outliers import outliers, without
from pocketgraph.quantization.ranges.range_margin import with_range_margin
from pocketgraph.quantization.ranges.range_selection import choose

__all__ = ["Outcome", "Prepared", "Progress", "QuantizationOptions", "finish", "observe", "prepare", "quantize"]

MOST_LAYERS = 1500  # operations with codes; weighing and fitting them takes time as the square of their number
FEWEST_TO_CUT = 16  # samples; fewer do not show how large values get, so that nothing they show is cut off
HEADROOM = 2.0
"""How much further int16 codes reach than the samples: other inputs do, and one bit of sixteen is easily spared."""
SLOWER = 2  # times its time that a multiplication in float takes more, about
MOST_WEIGHED = 64  # samples that measure each tensor's harm
HEAVY = 300_000_000  # multiplications of a program from which fewer samples measure each tensor's harm


@dataclass
class Outcome:
    """A quantized program and what is known of it.

    Attributes:
        exact: the float program that it was made from (equalized when that was asked for).
        converted: the eight-bit program.
        seen: what values each tensor took.
        ranges: the range chosen for each tensor.
        harm: the noise that each tensor's codes cause alone, as a share of the scores' power.
        kept: operations that stay in float because eight bits would hurt, or because they were named.
        hybrid: layers with int8 weights and float results.
        weights: the codes of each layer.
        notes: what was done and why, a sentence each.
        rounding: how the weights' codes were chosen; see Options.
        judged: the first outputs beside those of the float program, on all samples that it was judged on.
        are_unseen: whether those are others than it was calibrated with.
    """

    exact: Program
    converted: ConvertedProgram
    seen: Mapping[Value, Observation]
    ranges: Mapping[Value, Range]
    sensitivity: Mapping[Value, float]
    kept: list[Operation]
    hybrid: list[Operation]
    weights: Mapping[Operation, QuantizedWeights]
    notes: list[str] = field(default_factory=list)
    rounding: str = "nearest"
    judged: Comparison | None = None
    are_unseen: bool = False


@dataclass
class Prepared:
    """What is known of a float program before anything is decided; see Outcome for the attributes.

    Attributes:
        apart: operations that stay in float because codes would gain nothing there.
        loops: layers in the steps of unrolled loops, which quantize their operand themselves.
        bits: of the codes of tensors.
        left_out: the numbers, from 0, of samples that are unlike all others.
    """

    exact: Program
    seen: Mapping[Value, Observation]
    ranges: Mapping[Value, Range]
    sensitivity: Mapping[Value, float]
    named: list[Operation]
    apart: list[Operation]
    loops: list[Operation]
    notes: list[str]
    bits: int = 8
    left_out: Sequence[int] = ()

    @cached_property
    def coded(self) -> list[Operation]:
        """The operations that will compute with codes unless more is kept in float."""
        return quantized_operations(
            self.exact, ConversionRecipe(self.ranges, [*self.named, *self.apart], hybrid=self.loops, bits=self.bits)
        )


def quantize(
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
        findings: of an interrupted run, with the same arguments, from which to go on.

    Raises:
        UsageError: there are no samples, nothing to quantize, or ``keep`` names no tensor of the program.
        RunError: a sample has values that are not finite, or leads to some, or weights are not.
    """
    prepared = prepare(program, samples, count, options, progress, resume)
    return finish(prepared, samples, count, options, progress, resume)


def prepare(
    program: Program,
    samples: Samples,
    count: int,
    options: QuantizationOptions,
    progress: Progress | None = None,
    resume: ResumeState | None = None,
) -> Prepared:
    """Calibrates, chooses ranges, and measures what the codes of each tensor do to the scores; as ``quantize``."""
    tell = progress or silent
    if count < 1:
        raise UsageError("there is no sample to calibrate with", hint="give at least a few, better 100")
    check_weights(program)
    watched = _watched(with_depthwise_affine(program, options.keep), samples, count, options, tell, resume)
    program, seen, notes, left_out = watched
    samples, count = without(samples, left_out), count - len(left_out)
    is_wide = options.bits == 16 or count < FEWEST_TO_CUT
    method = "minmax" if is_wide and options.ranges == "auto" else options.ranges
    ranges = _chosen(program, seen, count, method, options)
    kept = named(program, options.keep)
    apart = [*last_normalizations(program), *preparation(program)] if options.io == "float" else []
    loops: list[Operation] = []
    if options.bits == 8 and (options.io == "float" or options.float_share > 0):
        loops, between = recurrent(program)
        loops = [operation for operation in loops if operation not in kept]
        apart += [operation for operation in between if operation not in apart]
        if loops:
            notes.append(
                f"{len(loops)} layers in the steps of a loop: weights in eight bits, the operand quantized anew in "
                "each step, and what is between them in float, because a step's rounding comes back in all later ones"
            )
    prepared = Prepared(program, seen, ranges, {}, kept, apart, loops, notes, options.bits, left_out)
    if options.io == "float" and options.bits == 8 and len(prepared.coded) <= MOST_LAYERS:
        apart += faster_in_float(program, prepared.coded)
        prepared = replace(prepared, apart=apart)
    coded = prepared.coded
    if not loops and not any(is_layer(operation) for operation in coded):
        raise UsageError("no layer of this model can be quantized", hint="it has no convolutions or matrix products")
    if len(coded) <= MOST_LAYERS:
        sensitivity = measure_sensitivity(program, samples, count, coded, ranges, options, tell, resume)
        prepared = replace(prepared, sensitivity=sensitivity)
    if options.io == "float" and options.bits == 8 and prepared.sensitivity:
        prepared = _with_finer_entrance(prepared, samples, count, options, method)
    return prepared


class _Watched(NamedTuple):
    """A program with even channels, what its tensors held, what there is to say of that, and which samples are left
    out from here on."""

    program: Program
    seen: Mapping[Value, Observation]
    notes: list[str]
    left_out: list[int]


def _watched(
    program: Program,
    samples: Samples,
    count: int,
    options: QuantizationOptions,
    tell: Progress,
    resume: ResumeState | None,
) -> _Watched:
    """Runs the samples through the program, and makes channels even by what was seen."""
    seen = observe(program, samples, count, tell, options.threads, resume)
    notes = list(warnings(program, seen, samples, count))
    left_out, warning = outliers(program, seen) if options.ranges == "auto" else ([], "")
    if left_out:
        notes.append(warning)
        samples, count = without(samples, left_out), count - len(left_out)
        seen = observe(program, samples, count, tell, options.threads, resume, "seen without outliers")
    if options.equalize:
        program, changed = equalize_across_layers(program, seen)
        notes.append(f"made the channels of {changed} tensors even")
        if changed:
            seen = observe(program, samples, count, tell, options.threads, resume, "seen evened")
    if options.bits == 8 and options.rounding != "nearest":
        program, others = equalize_channels(program, seen)
        if others:
            notes.append(f"made the channels of {len(others)} tensors even in front of layers that take each by itself")
            seen = {**seen, **observe(subprogram(program, others), samples, count, silent, options.threads)}
    return _Watched(program, seen, notes, left_out)


def _chosen(
    program: Program, seen: Mapping[Value, Observation], count: int, method: str, options: QuantizationOptions
) -> dict[Value, Range]:
    """The range of each tensor that has been seen."""
    ranges = {value: choose(found, method) for value, found in seen.items() if found.samples}
    if options.ranges == "auto" and options.bits == 8:
        ranges = with_range_margin(program, seen, ranges, count)
    if options.bits == 16:
        ranges = {value: Range(HEADROOM * span.low, HEADROOM * span.high) for value, span in ranges.items()}
    return ranges


def _with_finer_entrance(
    prepared: Prepared, samples: Samples, count: int, options: QuantizationOptions, method: str
) -> Prepared:
    """The same for the program with finer codes of what comes in, where that helps."""
    found = equalize_input(prepared.exact, prepared.seen, prepared.ranges, prepared.sensitivity)
    if found is None or found.layer not in prepared.coded:
        return prepared
    program, new = found.program, found.new
    seen = {**prepared.seen, **observe(subprogram(program, [new]), samples, count, silent, options.threads)}
    ranges = {**prepared.ranges, new: choose(seen[new], method)}
    noise = SensitivityAnalysis(program, samples, min(count, MOST_WEIGHED), options.threads).of_codes(new, ranges[new])
    if noise >= prepared.sensitivity[found.old]:
        return prepared
    sensitivity = {
        new: noise,
        **{value: other for value, other in prepared.sensitivity.items() if value is not found.old},
    }
    apart = [*prepared.apart, *(operation for operation in found.floats if operation not in prepared.apart)]
    notes = [*prepared.notes, found.note]
    return replace(prepared, exact=program, seen=seen, ranges=ranges, sensitivity=sensitivity, apart=apart, notes=notes)


def finish(
    prepared: Prepared,
    samples: Samples,
    count: int,
    options: QuantizationOptions,
    progress: Progress | None = None,
    resume: ResumeState | None = None,
) -> Outcome:
    """Decides what stays in float, finds the weights' codes and rewrites the program; as ``quantize``."""
    tell = progress or silent
    samples, count = without(samples, prepared.left_out), count - len(prepared.left_out)
    notes, kept = list(prepared.notes), list(prepared.named)
    if len(prepared.coded) > MOST_LAYERS:
        notes.append(
            f"{len(prepared.coded)} operations are too many to weigh and fit one by one: weights are just rounded"
        )
        options = replace(options, rounding="nearest", float_share=0.0)
    ends: set[Value] = set()
    if options.io == "float" and options.bits == 8:
        found = float_ends(prepared.exact, prepared.coded, prepared.sensitivity, [*kept, *prepared.apart])
        ends = {operation.outputs[0] for operation in found}
        prepared = replace(
            prepared, sensitivity={value: n for value, n in prepared.sensitivity.items() if value not in ends}
        )
    shifts: Mapping[Value, Array] = {}
    if prepared.sensitivity and options.rounding != "nearest" and options.bits == 8:
        prepared, shifts, said = _with_replicated_channels(prepared, options)
        notes += said
    program, coded, ranges, sensitivity = prepared.exact, prepared.coded, prepared.ranges, prepared.sensitivity
    stretch, said = _too_loud(program, coded, sensitivity, options)
    kept += stretch
    notes += said
    apart = [*kept, *prepared.apart]
    hybrid = [operation for operation in coded if operation.outputs[0] in ends and operation not in apart]
    if hybrid:
        notes.append(
            f"{', '.join(operation.outputs[0].name for operation in hybrid)}: results in float, so that no score "
            "is cut off or rounded; weights and operand are in eight bits all the same"
        )
    hybrid += prepared.loops
    recipe = ConversionRecipe(ranges, apart, {}, options.io, hybrid, options.bits, shifts)
    weights = fit_weights(program, samples, count, recipe, options, tell, resume)
    converted = convert(program, replace(recipe, weights=weights))
    if options.with_tables:
        untouched = {value for operation in [*kept, *preparation(program)] for value in operation.outputs}
        converted, said = with_compressed_constants(
            converted, {converted.values.get(value, value) for value in untouched}
        )
        notes += said
    return Outcome(
        program, converted, prepared.seen, ranges, sensitivity, kept, hybrid, weights, notes, options.rounding
    )


def _with_replicated_channels(
    prepared: Prepared, options: QuantizationOptions
) -> tuple[Prepared, Mapping[Value, Array], list[str]]:
    """The same with finer steps where a few channels decide, how far apart their steps are, and a note of it."""
    most_noise = 10 ** (-options.quiet / 10)
    finer = replicate_channels(
        prepared.exact, prepared.coded, prepared.ranges, prepared.sensitivity, most_noise, options.widen
    )
    if not finer.sources:
        return prepared, {}, []
    changed = replace(
        prepared,
        exact=finer.program,
        seen=finer.observed(prepared.seen),
        ranges=finer.carried(prepared.ranges),
        sensitivity=finer.relieved(prepared.sensitivity),
    )
    return changed, finer.shifts, [finer.note()]


def _too_loud(
    program: Program, coded: Sequence[Operation], sensitivity: Mapping[Value, float], options: QuantizationOptions
) -> tuple[Sequence[Operation], list[str]]:
    """What stays in float because all would be too noisy else, and a note of it."""
    total = sum(sensitivity.values())
    if not sensitivity or decibels(total) >= options.loud or options.float_share <= 0:
        return [], []
    larger = options.float_share if math.isfinite(options.loud) else math.inf  # a budget comes before the size
    stretch = most_sensitive_stretch(program, coded, sensitivity, options.float_share, larger)
    if not stretch:
        return [], []
    share = sum(multiplications(operation) for operation in stretch) / sum(
        multiplications(o) for o in program.operations
    )
    note = (
        f"kept {len(stretch)} operations in float ({share:.1%} of all multiplications), from "
        f"{stretch[0].outputs[0].name} to {stretch[-1].outputs[0].name}, because the rounding of all tensors "
        f"together would leave {decibels(total):.1f} dB; expect up to {SLOWER * share:.0%} more time, "
        "--float_share=0 keeps everything in eight bits"
    )
    return stretch, [note]


def measure_sensitivity(
    program: Program,
    samples: Samples,
    count: int,
    coded: Sequence[Operation],
    ranges: Mapping[Value, Range],
    options: QuantizationOptions,
    tell: Progress,
    resume: ResumeState | None = None,
) -> dict[Value, float]:
    """The noise at the scores that the codes of each tensor cause alone."""
    heavy = sum(multiplications(operation) for operation in program.operations) > HEAVY
    touched = [v for v in program.inputs if v in ranges]
    touched += [
        v
        for o in coded
        if OPERATOR_RULES[o.code] is not OperatorRule.SAME or is_table(o)
        for v in o.outputs
        if v in ranges
    ]
    leaders, shared = shared_quantization(program, coded), dict[Value, Range]()
    for value, span in ranges.items():  # what is joined has the same codes, whatever range it has by itself
        leader = leaders.get(value, value)
        shared[leader] = shared[leader].union(span) if leader in shared else span
    kept = resume or ResumeState()
    known = kept.get("harm")
    judge: SensitivityAnalysis | None = None
    sensitivity = {}
    for done, value in enumerate(touched):
        name = str(done)
        if name not in known:
            judge = judge or SensitivityAnalysis(
                program, samples, min(count, 4 if heavy else MOST_WEIGHED), options.threads
            )
            known[name] = np.array(judge.of_codes(value, shared[leaders[value]], options.bits))
            kept.put("harm", {name: known[name]})
        sensitivity[value] = float(known[name])
        tell("weighing each tensor", done + 1, len(touched))
    return sensitivity


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody is told."""
