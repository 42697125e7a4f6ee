"""The whole way from a float program and samples to an eight-bit one, and what was found on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.quantize import operators
from pocketgraph.quantize.choose_range import CHOICES, choose
from pocketgraph.quantize.convert import Converted, Recipe, coded_operations, convert
from pocketgraph.quantize.equalize import equalize
from pocketgraph.quantize.harm import Harm, decibels, scores, work, worst_stretch
from pocketgraph.quantize.observe import Observation
from pocketgraph.quantize.operators import KINDS, Kind
from pocketgraph.quantize.patches import REDUCIBLE, is_grouped
from pocketgraph.quantize.ranges import Range
from pocketgraph.quantize.reconstruct import BOUNDS, Fit, can_fit, collect, correct_bias, reconstruct
from pocketgraph.quantize.running import Running, Samples
from pocketgraph.quantize.weights import Weights, rounded
from pocketgraph.runtime.engines.litert.program import Operation, Program, Value

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps of it are done, and of how many."""

LAST = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")
ROUNDINGS = ("fitted", "corrected", "nearest")
MOST_LAYERS = 400  # operations with codes; weighing and fitting them takes time as the square of their number
MOST_SCORES = 1 << 16  # of a last layer that gives its results in float
HEAVY = 300_000_000  # multiplications of a program from which fewer samples measure each tensor's harm


@dataclass(frozen=True)
class Options:
    """What the caller wants.

    Attributes:
        ranges: how activation ranges are chosen: ``minmax``, ``percentile``, ``mse``, ``entropy``, or ``auto``, which
            takes for each tensor the one with the least squared error.
        rounding: how weights are: ``fitted`` to the results of their layer, ``nearest`` with ``corrected`` biases, or
            just ``nearest``.
        equalize: whether channels are made even across layers first.
        io: what goes in and comes out: ``float`` or ``int8``.
        keep: names of tensors whose operations stay in float.
        float_share: the largest share of the program's multiplications that may stay in float where eight bits hurt.
        quiet: decibels; when all tensors' codes together make less noise at the scores, nothing stays in float for it.
        threads: how many threads to compute with.
        seed: of every choice by chance.
    """

    ranges: str = "auto"
    rounding: str = "fitted"
    equalize: bool = False
    io: str = "float"
    keep: Sequence[str] = ()
    float_share: float = 0.12
    quiet: float = 30.0
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("rounding", self.rounding, ROUNDINGS),
            ("ranges", self.ranges, (*CHOICES, "auto")),
            ("io", self.io, ("float", "int8")),
        ):
            if value not in allowed:
                raise UsageError(f"--{name} is one of {', '.join(allowed)}, not '{value}'")
        if not 0 <= self.float_share <= 1:
            raise UsageError(f"--float_share is a share from 0 to 1, not {self.float_share:g}")


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


def quantize(
    program: Program, samples: Samples, count: int, options: Options, progress: Progress | None = None
) -> Outcome:
    """Quantizes a float program with the help of samples.

    Args:
        program: the float program; it stays as it is.
        samples: realistic inputs, without labels.
        count: how many samples there are.
        options: see there.
        progress: told how far it is.

    Raises:
        UsageError: there are no samples, nothing to quantize, or ``keep`` names no tensor of the program.
        RunError: a sample has values that are not finite, or leads to some.
    """
    tell = progress or (lambda stage, done, total: None)
    if count < 1:
        raise UsageError("there is no sample to calibrate with", hint="give at least a few, better 100")
    seen = observe(program, samples, count, tell, options.threads)
    notes: list[str] = []
    if options.equalize:
        program, changed = equalize(program, seen)
        notes.append(f"made the channels of {changed} tensors even")
        if changed:
            seen = observe(program, samples, count, tell, options.threads)
    ranges = {value: choose(found, options.ranges) for value, found in seen.items() if found.samples}
    kept = _named(program, options.keep)
    last = _last(program) if options.io == "float" else []
    coded = coded_operations(program, Recipe(ranges, [*kept, *last]))
    if not any(KINDS[operation.code] is Kind.WEIGHTED for operation in coded):
        raise UsageError("no layer of this model can be quantized", hint="it has no convolutions or matrix products")
    if len(coded) > MOST_LAYERS:
        notes.append(f"{len(coded)} operations are too many to weigh and fit one by one: weights are just rounded")
        options = replace(options, rounding="nearest", float_share=0.0)
    harm = measure_harm(program, samples, count, coded, ranges, options, tell) if len(coded) <= MOST_LAYERS else {}
    total = sum(harm.values())
    if harm and decibels(total) < options.quiet and options.float_share > 0:
        stretch = worst_stretch(program, coded, harm, options.float_share)
        if stretch:
            share = sum(work(operation) for operation in stretch) / sum(work(o) for o in program.operations)
            notes.append(
                f"kept {len(stretch)} operations in float ({share:.1%} of all multiplications), from "
                f"{stretch[0].outputs[0].name} to {stretch[-1].outputs[0].name}, because the rounding of all tensors "
                f"together would leave {decibels(total):.1f} dB; expect up to {share:.0%} more time, "
                "--float_share=0 keeps everything in eight bits"
            )
            kept += stretch
    hybrid = _loud_ends(program, coded, harm, [*kept, *last]) if options.io == "float" else []
    if hybrid:
        notes.append(
            f"{', '.join(operation.outputs[0].name for operation in hybrid)}: results in float, because their steps "
            "would be most of the noise; weights and operand are in eight bits all the same"
        )
    recipe = Recipe(ranges, [*kept, *last], {}, options.io, hybrid)
    weights = fit_weights(program, samples, count, recipe, options, tell)
    converted = convert(program, replace(recipe, weights=weights))
    return Outcome(program, converted, seen, ranges, harm, kept, hybrid, weights, notes)


def observe(program: Program, samples: Samples, count: int, tell: Progress, threads: int) -> dict[Value, Observation]:
    """What values every float tensor of the program takes."""
    values = [value for value in program.inputs if value.dtype is FLOAT]
    values += [v for operation in program.operations for v in operation.outputs if v.dtype is FLOAT]
    bounds = {o.outputs[0]: BOUNDS[a] for o in program.operations if (a := o.options.get("activation")) in BOUNDS}
    seen = {value: Observation(value.name, bounds.get(value, (-math.inf, math.inf))) for value in values}
    running = Running(program, values, threads)
    for done, sample in enumerate(samples(), 1):
        running.visit(sample, lambda value, array: seen[value].add(array))
        tell("calibrating", done, count)
    return seen


def measure_harm(
    program: Program,
    samples: Samples,
    count: int,
    coded: Sequence[Operation],
    ranges: Mapping[Value, Range],
    options: Options,
    tell: Progress,
) -> dict[Value, float]:
    """The noise at the scores that the codes of each tensor cause alone."""
    heavy = sum(work(operation) for operation in program.operations) > HEAVY
    judge = Harm(program, samples, min(count, 4 if heavy else 64), options.threads)
    touched = [v for v in program.inputs if v in ranges]
    touched += [v for o in coded if KINDS[o.code] is not Kind.SAME for v in o.outputs if v in ranges]
    harm = {}
    for done, value in enumerate(touched, 1):
        harm[value] = judge.of_codes(value, ranges[value])
        tell("weighing each tensor", done, len(touched))
    return harm


def fit_weights(
    program: Program,
    samples: Samples,
    count: int,
    recipe: Recipe,
    options: Options,
    tell: Progress,
) -> dict[Operation, Weights]:
    """The codes of every layer, one after the other, each given those before it."""
    weights: dict[Operation, Weights] = {}
    if options.rounding == "nearest":
        return weights
    layers = [
        operation
        for operation in [*coded_operations(program, recipe), *recipe.hybrid]
        if KINDS[operation.code] is Kind.WEIGHTED and operation.code != "TRANSPOSE_CONV"
    ]
    uses = Counter(operators.weights(operation) for operation in layers)
    for done, operation in enumerate(layers, 1):
        before = convert(program, replace(recipe, weights=weights, io="float"))
        source = before.values[operators.data(operation)]
        exact = Running(program, [operators.data(operation)], options.threads)
        coded = Running(before.program, [source], options.threads)
        scale = source.quantization.scales[0] if source.quantization else 1.0
        is_shared = uses[operators.weights(operation)] > 1  # its codes must be the same everywhere
        how = replace(options, rounding="corrected") if is_shared else options
        weights[operation] = _fitted(operation, exact, coded, samples, count, scale, how)
        tell("fitting weights", done, len(layers))
    return weights


def _fitted(
    operation: Operation,
    exact: Running,
    coded: Running,
    samples: Samples,
    count: int,
    data_scale: float,
    options: Options,
) -> Weights:
    fit = Fit(seed=options.seed)
    nearest = rounded(operation, data_scale)
    if operation.code not in REDUCIBLE or is_grouped(operation):
        return nearest
    wanted, given = collect(operation, exact, coded, samples, count, fit)
    if options.rounding == "corrected" or not can_fit(operation):
        return correct_bias(operation, nearest, wanted, given)
    return reconstruct(operation, wanted, given, data_scale, fit)


def _loud_ends(
    program: Program, coded: Sequence[Operation], harm: Mapping[Value, float], keep: Sequence[Operation]
) -> list[Operation]:
    """Last layers whose results' codes make more noise than everything else together."""
    ends = set(scores(program))
    total = sum(harm.values())
    found = []
    for operation in coded:
        value = operation.outputs[0]
        if operation.code not in ("CONV_2D", "FULLY_CONNECTED") or value not in ends or operation in keep:
            continue
        if harm.get(value, 0.0) > total / 2 and value.size <= MOST_SCORES:
            found.append(operation)
    return found


def _last(program: Program) -> list[Operation]:
    """The normalizations at the outputs: in float they cost next to nothing and lose nothing."""
    producers = program.producers()
    found = []
    for output in program.outputs:
        before = producers.get(output)
        while before is not None and before.code == "RESHAPE" and before.inputs[0] is not None:
            before = producers.get(before.inputs[0])
        if before is not None and before.code in LAST:
            found.append(before)
    return found


def _named(program: Program, names: Sequence[str]) -> list[Operation]:
    """The operations that make the tensors or compute the nodes of these names."""
    by_name: dict[str, Operation] = {}
    for operation in program.operations:
        for name in (*operation.nodes, *(value.name for value in operation.outputs)):
            by_name[name] = operation
    for name in names:
        if name not in by_name:
            raise UsageError(f"--keep: the model has no layer '{name}'", hint=did_you_mean(name, by_name))
    return [by_name[name] for name in names]
