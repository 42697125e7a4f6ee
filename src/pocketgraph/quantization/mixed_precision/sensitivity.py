"""What eight bits in one place alone do to the outputs, and which operations to keep in float for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph.dtype import FLOAT, INT8, INT16
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.conversion_recipe import shared_quantization
from pocketgraph.quantization.core.layerwise_execution import MOST_SHOWN_BYTES, bytes_of
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule, is_layer, is_table, weights
from pocketgraph.quantization.core.program_runner import ProgramRunner, Sample, Samples
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import replace_weights
from pocketgraph.quantization.core.thread_map import mapped_ahead
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.mixed_precision.segmented_execution import Held, SegmentedExecution
from pocketgraph.quantization.program_pass import copied

FINAL = ("ARG_MAX", "DEQUANTIZE", "LOGISTIC", "LOG_SOFTMAX", "RESHAPE", "SOFTMAX")
"""What may follow the scores of a classifier; errors are measured before it, where they are not squeezed together."""

RESUMED = "sensitivity by sample"
"""What the powers are kept under for a call that goes on."""
LEAST_POWER = 1e-30  # of scores that are all the same


def scores(program: Program) -> list[Value]:
    """The tensors to judge a program by: its outputs, or what their last normalization is made from."""
    producers = program.producers()
    judged = []
    for output in program.outputs:
        value, before = output, producers.get(output)
        while before is not None and before.code in FINAL and before.inputs[0] is not None:
            value = before.inputs[0]
            before = producers.get(value)
        judged.append(value if value.constant is None and value not in program.inputs else output)
    return [value for value in dict.fromkeys(judged) if value.dtype is FLOAT and value.constant is None]


def powers_of_codes(
    program: Program,
    samples: Iterable[Sample],
    spans: Mapping[Value, Range],
    bits: int = 8,
    threads: int = 1,
    tell: Callable[[int], None] = lambda done: None,
) -> Iterator[Array]:
    """What codes for one tensor alone do to the scores, tensor by tensor.

    Each sample is run once; from behind each tensor it is run on once more with what its codes stand for.

    Args:
        program: the float program.
        samples: what to run it on.
        spans: the tensors in running order, and the range of their codes.
        bits: of the codes, 8 or 16.
        threads: how many threads to compute with.
        tell: how many tensors are done.

    Yields:
        For each sample the power of its scores and of the noise that each tensor causes, float64
        [1 + tensors, scores].
    """
    judged = scores(program)
    is_large = bytes_of([operation.outputs for operation in program.operations]) > MOST_SHOWN_BYTES
    running = SegmentedExecution(program, spans, judged, threads if is_large else 1, is_kept=not is_large)
    order = sorted(spans, key=running.place)
    beside = 0 if is_large or threads < 2 else threads
    done = 0
    for sample in samples:
        start = running.begin(sample)
        wanted = running.finish(start, 0)

        def noise_from(cut: tuple[Value, Held, int], wanted: Sequence[Array] = wanted) -> list[float]:
            value, held, place = cut
            results = wanted
            if value in held:  # else nothing reads it
                back = _through_codes(value, spans[value], bits)([held[value]])[0]
                results = running.finish({**held, value: back}, place)
            pairs = zip(wanted, results, strict=True)
            return [_power(a.astype(np.float64) - b.astype(np.float64)) for a, b in pairs]

        noise: dict[Value, list[float]] = {}
        measured = mapped_ahead(noise_from, _cuts(running, order, start), beside)
        for value, powers in zip(order, measured, strict=True):
            noise[value] = powers
            done += 1
            tell(done)
        signal = [_power(array.astype(np.float64)) for array in wanted]
        rows = [signal, *(noise[value] for value in spans)]
        yield np.array(rows, np.float64).reshape(len(rows), len(judged))


def _cuts(running: SegmentedExecution, order: Sequence[Value], held: Held) -> Iterator[tuple[Value, Held, int]]:
    """The tensors in running order, each with what is held behind the operation that makes it, and where that is."""
    place = 0
    for value in order:
        while place < running.place(value):
            held, place = running.advance(held, place), place + 1
        yield value, held, place


def _through_codes(value: Value, span: Range, bits: int) -> ProgramRunner:
    """Gives a tensor codes, and the numbers that these stand for."""
    coded = Value(f"{value.name}/codes", INT16 if bits == 16 else INT8, value.shape, None, span.quantization(bits))
    back = Value(f"{value.name}/back", FLOAT, value.shape)
    steps = [Operation("QUANTIZE", [value], [coded]), Operation("DEQUANTIZE", [coded], [back])]
    return ProgramRunner(Program([value], [back], steps))


def noise_of_codes(powers: Iterable[Array]) -> Array:
    """The noise that each tensor causes, as a share of the signal's power, float64 [tensors].

    Args:
        powers: what ``powers_of_codes`` gave for each sample.
    """
    total = sum(powers, np.zeros(()))
    shares: Array = (total[1:] / np.maximum(total[0], LEAST_POWER)).max(axis=1, initial=0.0)
    return shares


def samples_weighed_on(program: Program) -> int:
    """How many samples at most measure what the codes of each tensor of a float program do."""
    return step_limits.sensitivity_samples(
        program.operations, min((value.size for value in scores(program)), default=0)
    )


class SensitivityAnalysis:
    """Measures other weights of a program by their effect on its scores.

    Args:
        program: the float program.
        samples: what to run it on.
        count: how many of the samples.
        threads: how many threads to compute with.
    """

    def __init__(self, program: Program, samples: Samples, count: int, threads: int = 1) -> None:
        self.program = program
        self.threads = threads
        self.judged = scores(program)
        self._samples = [[np.array(array) for array in sample] for sample in islice(samples(), count)]
        self._wanted = self._results(program)
        self._power = [max(sum(map(_power, wanted)), LEAST_POWER) for wanted in self._wanted]

    def of_weights(self, operation: Operation, values: Array, bias: Array) -> float:
        """Noise, as a share of the signal's power, that other weights and another bias for one layer alone cause."""
        changed = copied(self.program)
        replace_weights(changed.operations[self.program.operations.index(operation)], values, bias)
        shares = [
            sum(map(_noise, wanted, result)) / power
            for wanted, result, power in zip(self._wanted, self._results(changed), self._power, strict=True)
        ]
        return max(shares, default=0.0)

    def _results(self, program: Program) -> list[list[Array]]:
        running = ProgramRunner(program, self.judged, self.threads)
        rows = [running(sample) for sample in self._samples]
        return [[row[index].astype(np.float64) for row in rows] for index in range(len(self.judged))]


def _power(array: Array) -> float:
    """Of finite scores without what all of them have in common, which says nothing; of a single number as it is."""
    known = array[np.isfinite(array)]
    return float(((known - known.mean() if known.size > 1 else known) ** 2).sum())


def _noise(wanted: Array, result: Array) -> float:
    """The power of the difference where a score is wanted; infinite where it is none any more."""
    known = np.isfinite(wanted)
    return _power(wanted[known] - result[known]) if np.isfinite(result[known]).all() else math.inf


def most_sensitive_stretch(
    program: Program,
    coded: Collection[Operation],
    sensitivity: Mapping[Value, float],
    most: float,
    larger: float = math.inf,
) -> list[Operation]:
    """The operations in a row to keep in float that spare the most noise for their work.

    A tensor is spared when all that make and read it compute in float.

    Args:
        coded: the operations that would compute with codes.
        sensitivity: the noise that each tensor's codes cause.
        most: the share of the program's work to give up for it.
        larger: by what share its weights may grow for it; those in float take four times the bytes.
    """
    room = larger * max(sum(_weights(operation) for operation in program.operations), 1)
    operations = [operation for operation in program.operations if operation in set(coded)]
    total = step_limits.total_multiplications(program.operations) or 1
    readers = {value: set(map(id, reading)) for value, reading in program.consumers().items() if value in sensitivity}
    outputs = set(program.outputs)
    best: tuple[float, int, int] = (0.0, 0, 0)
    for start in range(len(operations)):
        inside: set[int] = set()
        spent = grown = 0
        for end in range(start, len(operations)):
            spent += step_limits.multiplications(operations[end])
            grown += step_limits.EXTRA_BYTES_OF_FLOAT_WEIGHT * _weights(operations[end])
            if spent > most * total or grown > room:
                break
            inside.add(id(operations[end]))
            spared = sum(
                sensitivity.get(value, 0.0)
                for operation in operations[start : end + 1]
                for value in operation.outputs
                if value not in outputs and readers.get(value) and readers[value] <= inside
            )
            if spared > best[0] * 1.02:
                best = spared, start, end + 1
    return operations[best[1] : best[2]]


def _weights(operation: Operation) -> int:
    return weights(operation).size if is_layer(operation) else 0


def decibels(noise: float) -> float:
    """Signal to noise of a noise that is a share of the signal."""
    return math.inf if noise <= 0 else -10 * math.log10(noise)


def spans_with_codes(state: QuantizationState) -> tuple[dict[Value, Range], dict[Value, Value]]:
    """The range of each tensor whose codes make noise of their own, and for each tensor the one whose codes it has."""
    program, coded = state.program, state.coded
    touched = [value for value in program.inputs if value in state.ranges]
    for operation in coded:
        if OPERATOR_RULES[operation.code] is not OperatorRule.SAME or is_table(operation):
            touched += [value for value in operation.outputs if value in state.ranges]
    leaders, shared = shared_quantization(program, coded), dict[Value, Range]()
    for value, span in state.ranges.items():  # what is joined has the same codes, whatever range it has by itself
        leader = leaders.get(value, value)
        shared[leader] = shared[leader].union(span) if leader in shared else span
    leaders = {value: leaders.get(value, value) for value in touched}
    return {value: shared[leader] for value, leader in leaders.items()}, leaders


def measure_sensitivity(state: QuantizationState) -> bool:
    """The step: the noise at the scores that the codes of each tensor cause alone."""
    program, options = state.program, state.options
    spans, _ = spans_with_codes(state)
    most = samples_weighed_on(program)
    count = min(state.count, most, step_limits.weighed_samples(len(spans), len(program.operations)))
    known = state.resume.get(RESUMED)
    waiting = [at for at in range(count) if str(at) not in known]
    kept = set(waiting)
    samples = (sample for at, sample in enumerate(islice(state.samples(), count)) if at in kept)
    total, before = count * len(spans), (count - len(waiting)) * len(spans)

    def tell(done: int) -> None:
        state.progress("weighing each tensor", before + done, total)

    is_very_heavy = most == step_limits.VERY_HEAVY_SENSITIVITY_SAMPLES
    measured = powers_of_codes(program, samples, spans, options.bits, options.threads, tell) if spans else ()
    for at, powers in zip(waiting, measured, strict=False):  # a sample less than was said is no harm
        known[str(at)] = powers
        state.resume.put(RESUMED, {str(at): powers})
        if _is_far_below(noise_of_codes(known.values()), options, is_very_heavy=is_very_heavy):
            break
    in_order = [known[str(at)] for at in range(count) if str(at) in known]
    noise = noise_of_codes(in_order) if in_order else ()
    state.sensitivity = {value: float(share) for value, share in zip(spans, noise, strict=True)} if in_order else {}
    return bool(state.sensitivity)


def _is_far_below(noise: Array, options: QuantizationOptions, *, is_very_heavy: bool) -> bool:
    """Whether there is so little noise that no step does anything for it, nor would after another sample."""
    if not is_very_heavy and options.bits == 8:  # steps for eight bits go by each tensor's share of however little
        return False
    less = step_limits.SAMPLE_DECIBELS if is_very_heavy else step_limits.SAMPLE_DECIBELS_INT16
    return decibels(float(noise.sum())) >= max(options.quiet, options.loud) + less


def keep_most_sensitive(state: QuantizationState) -> bool:
    """The step: a stretch of operations stays in float where the noise of all tensors would be too much else."""
    total, options, program = sum(state.sensitivity.values()), state.options, state.program
    if decibels(total) >= max(options.quiet, options.loud):
        return False
    larger = options.float_share if math.isfinite(options.loud) else math.inf  # a budget comes before the size
    stretch = most_sensitive_stretch(program, state.coded, state.sensitivity, options.float_share, larger)
    if not stretch:
        return False
    inside = [value for operation in stretch[:-1] for value in operation.outputs]
    spared = sum(state.sensitivity.get(value, 0.0) for value in inside)
    if decibels(total) >= options.loud and spared < step_limits.MUCH_SPARED_SHARE * total:
        return False
    share = step_limits.total_multiplications(stretch) / step_limits.total_multiplications(program.operations)
    state.kept += stretch
    state.notes.append(
        f"kept {counted(len(stretch), 'operation')} in float ({share:.1%} of all multiplications), from "
        f"{stretch[0].outputs[0].name} to {stretch[-1].outputs[0].name}, because the rounding of all tensors "
        f"would leave {decibels(total):.1f} dB, as the sum of each one's alone; expect up to "
        f"{step_limits.FLOAT_SLOWDOWN * share:.0%} more time, {option('float_share')}=0 keeps everything in eight bits"
    )
    return True
