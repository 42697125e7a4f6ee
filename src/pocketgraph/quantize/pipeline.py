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
from pocketgraph.quantize.calibrating import observe
from pocketgraph.quantize.channelwise import with_channelwise_layers
from pocketgraph.quantize.choose_range import choose
from pocketgraph.quantize.convert import Converted, Recipe, coded_operations, convert, shared_codes
from pocketgraph.quantize.entrance import finer_entrance
from pocketgraph.quantize.equalize import equalize
from pocketgraph.quantize.evening import evened
from pocketgraph.quantize.fitting import fit_weights
from pocketgraph.quantize.harm import Harm, decibels, work, worst_stretch
from pocketgraph.quantize.headroom import with_headroom
from pocketgraph.quantize.islands import faster_in_float
from pocketgraph.quantize.judge import Comparison
from pocketgraph.quantize.observe import Observation
from pocketgraph.quantize.operators import KINDS, Kind, is_table
from pocketgraph.quantize.options import Options, Progress
from pocketgraph.quantize.outliers import outliers, without
from pocketgraph.quantize.ranges import Range
from pocketgraph.quantize.recurrence import recurrent
from pocketgraph.quantize.resume import Findings
from pocketgraph.quantize.running import Array, Samples, part
from pocketgraph.quantize.soundness import check_weights, warnings
from pocketgraph.quantize.stagger import stagger
from pocketgraph.quantize.staying_float import float_ends, last_normalizations, named, preparation
from pocketgraph.quantize.stored_codes import with_stored_codes
from pocketgraph.quantize.weights import Weights

__all__ = ["Options", "Outcome", "Prepared", "Progress", "finish", "observe", "prepare", "quantize"]

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
    converted: Converted
    seen: Mapping[Value, Observation]
    ranges: Mapping[Value, Range]
    harm: Mapping[Value, float]
    kept: list[Operation]
    hybrid: list[Operation]
    weights: Mapping[Operation, Weights]
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
    harm: Mapping[Value, float]
    named: list[Operation]
    apart: list[Operation]
    loops: list[Operation]
    notes: list[str]
    bits: int = 8
    left_out: Sequence[int] = ()

    @cached_property
    def coded(self) -> list[Operation]:
        """The operations that will compute with codes unless more is kept in float."""
        return coded_operations(
            self.exact, Recipe(self.ranges, [*self.named, *self.apart], hybrid=self.loops, bits=self.bits)
        )


def quantize(
    program: Program,
    samples: Samples,
    count: int,
    options: Options,
    progress: Progress | None = None,
    findings: Findings | None = None,
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
    prepared = prepare(program, samples, count, options, progress, findings)
    return finish(prepared, samples, count, options, progress, findings)


def prepare(
    program: Program,
    samples: Samples,
    count: int,
    options: Options,
    progress: Progress | None = None,
    findings: Findings | None = None,
) -> Prepared:
    """Calibrates, chooses ranges, and measures what the codes of each tensor do to the scores; as ``quantize``."""
    tell = progress or silent
    if count < 1:
        raise UsageError("there is no sample to calibrate with", hint="give at least a few, better 100")
    check_weights(program)
    watched = _watched(with_channelwise_layers(program, options.keep), samples, count, options, tell, findings)
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
    if not loops and not any(KINDS[operation.code] is Kind.WEIGHTED for operation in coded):
        raise UsageError("no layer of this model can be quantized", hint="it has no convolutions or matrix products")
    if len(coded) <= MOST_LAYERS:
        harm = measure_harm(program, samples, count, coded, ranges, options, tell, findings)
        prepared = replace(prepared, harm=harm)
    if options.io == "float" and options.bits == 8 and prepared.harm:
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
    program: Program, samples: Samples, count: int, options: Options, tell: Progress, findings: Findings | None
) -> _Watched:
    """Runs the samples through the program, and makes channels even by what was seen."""
    seen = observe(program, samples, count, tell, options.threads, findings)
    notes = list(warnings(program, seen, samples, count))
    left_out, warning = outliers(program, seen) if options.ranges == "auto" else ([], "")
    if left_out:
        notes.append(warning)
        samples, count = without(samples, left_out), count - len(left_out)
        seen = observe(program, samples, count, tell, options.threads, findings, "seen without outliers")
    if options.equalize:
        program, changed = equalize(program, seen)
        notes.append(f"made the channels of {changed} tensors even")
        if changed:
            seen = observe(program, samples, count, tell, options.threads, findings, "seen evened")
    if options.bits == 8 and options.rounding != "nearest":
        program, others = evened(program, seen)
        if others:
            notes.append(f"made the channels of {len(others)} tensors even in front of layers that take each by itself")
            seen = {**seen, **observe(part(program, others), samples, count, silent, options.threads)}
    return _Watched(program, seen, notes, left_out)


def _chosen(
    program: Program, seen: Mapping[Value, Observation], count: int, method: str, options: Options
) -> dict[Value, Range]:
    """The range of each tensor that has been seen."""
    ranges = {value: choose(found, method) for value, found in seen.items() if found.samples}
    if options.ranges == "auto" and options.bits == 8:
        ranges = with_headroom(program, seen, ranges, count)
    if options.bits == 16:
        ranges = {value: Range(HEADROOM * span.low, HEADROOM * span.high) for value, span in ranges.items()}
    return ranges


def _with_finer_entrance(prepared: Prepared, samples: Samples, count: int, options: Options, method: str) -> Prepared:
    """The same for the program with finer codes of what comes in, where that helps."""
    found = finer_entrance(prepared.exact, prepared.seen, prepared.ranges, prepared.harm)
    if found is None or found.layer not in prepared.coded:
        return prepared
    program, new = found.program, found.new
    seen = {**prepared.seen, **observe(part(program, [new]), samples, count, silent, options.threads)}
    ranges = {**prepared.ranges, new: choose(seen[new], method)}
    noise = Harm(program, samples, min(count, MOST_WEIGHED), options.threads).of_codes(new, ranges[new])
    if noise >= prepared.harm[found.old]:
        return prepared
    harm = {new: noise, **{value: other for value, other in prepared.harm.items() if value is not found.old}}
    apart = [*prepared.apart, *(operation for operation in found.floats if operation not in prepared.apart)]
    notes = [*prepared.notes, found.note]
    return replace(prepared, exact=program, seen=seen, ranges=ranges, harm=harm, apart=apart, notes=notes)


def finish(
    prepared: Prepared,
    samples: Samples,
    count: int,
    options: Options,
    progress: Progress | None = None,
    findings: Findings | None = None,
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
        found = float_ends(prepared.exact, prepared.coded, prepared.harm, [*kept, *prepared.apart])
        ends = {operation.outputs[0] for operation in found}
        prepared = replace(prepared, harm={value: n for value, n in prepared.harm.items() if value not in ends})
    shifts: Mapping[Value, Array] = {}
    if prepared.harm and options.rounding != "nearest" and options.bits == 8:
        prepared, shifts, said = _staggered(prepared, options)
        notes += said
    program, coded, ranges, harm = prepared.exact, prepared.coded, prepared.ranges, prepared.harm
    stretch, said = _too_loud(program, coded, harm, options)
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
    recipe = Recipe(ranges, apart, {}, options.io, hybrid, options.bits, shifts)
    weights = fit_weights(program, samples, count, recipe, options, tell, findings)
    converted = convert(program, replace(recipe, weights=weights))
    if options.with_tables:
        untouched = {value for operation in [*kept, *preparation(program)] for value in operation.outputs}
        converted, said = with_stored_codes(converted, {converted.values.get(value, value) for value in untouched})
        notes += said
    return Outcome(program, converted, prepared.seen, ranges, harm, kept, hybrid, weights, notes, options.rounding)


def _staggered(prepared: Prepared, options: Options) -> tuple[Prepared, Mapping[Value, Array], list[str]]:
    """The same with finer steps where a few channels decide, how far apart their steps are, and a note of it."""
    most_noise = 10 ** (-options.quiet / 10)
    finer = stagger(prepared.exact, prepared.coded, prepared.ranges, prepared.harm, most_noise, options.widen)
    if not finer.sources:
        return prepared, {}, []
    changed = replace(
        prepared,
        exact=finer.program,
        seen=finer.observed(prepared.seen),
        ranges=finer.carried(prepared.ranges),
        harm=finer.relieved(prepared.harm),
    )
    return changed, finer.shifts, [finer.note()]


def _too_loud(
    program: Program, coded: Sequence[Operation], harm: Mapping[Value, float], options: Options
) -> tuple[Sequence[Operation], list[str]]:
    """What stays in float because all would be too noisy else, and a note of it."""
    total = sum(harm.values())
    if not harm or decibels(total) >= options.loud or options.float_share <= 0:
        return [], []
    larger = options.float_share if math.isfinite(options.loud) else math.inf  # a budget comes before the size
    stretch = worst_stretch(program, coded, harm, options.float_share, larger)
    if not stretch:
        return [], []
    share = sum(work(operation) for operation in stretch) / sum(work(o) for o in program.operations)
    note = (
        f"kept {len(stretch)} operations in float ({share:.1%} of all multiplications), from "
        f"{stretch[0].outputs[0].name} to {stretch[-1].outputs[0].name}, because the rounding of all tensors "
        f"together would leave {decibels(total):.1f} dB; expect up to {SLOWER * share:.0%} more time, "
        "--float_share=0 keeps everything in eight bits"
    )
    return stretch, [note]


def measure_harm(
    program: Program,
    samples: Samples,
    count: int,
    coded: Sequence[Operation],
    ranges: Mapping[Value, Range],
    options: Options,
    tell: Progress,
    findings: Findings | None = None,
) -> dict[Value, float]:
    """The noise at the scores that the codes of each tensor cause alone."""
    heavy = sum(work(operation) for operation in program.operations) > HEAVY
    touched = [v for v in program.inputs if v in ranges]
    touched += [v for o in coded if KINDS[o.code] is not Kind.SAME or is_table(o) for v in o.outputs if v in ranges]
    leaders, shared = shared_codes(program, coded), dict[Value, Range]()
    for value, span in ranges.items():  # what is joined has the same codes, whatever range it has by itself
        leader = leaders.get(value, value)
        shared[leader] = shared[leader].union(span) if leader in shared else span
    kept = findings or Findings()
    known = kept.get("harm")
    judge: Harm | None = None
    harm = {}
    for done, value in enumerate(touched):
        name = str(done)
        if name not in known:
            judge = judge or Harm(program, samples, min(count, 4 if heavy else MOST_WEIGHED), options.threads)
            known[name] = np.array(judge.of_codes(value, shared[leaders[value]], options.bits))
            kept.put("harm", {name: known[name]})
        harm[value] = float(known[name])
        tell("weighing each tensor", done + 1, len(touched))
    return harm


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody is told."""
