"""What eight bits in one place alone do to the outputs, and which operations to keep in float for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np

from pocketgraph.errors import option
from pocketgraph.graph.dtype import FLOAT, INT8, INT16
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import cost_model
from pocketgraph.quantization.core.conversion_recipe import shared_quantization
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule, is_layer, is_table, weights
from pocketgraph.quantization.core.program_runner import Array, ProgramRunner, Samples
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import replace_weights
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.program_pass import copied

FINAL = ("ARG_MAX", "DEQUANTIZE", "LOGISTIC", "LOG_SOFTMAX", "RESHAPE", "SOFTMAX")
"""What may follow the scores of a classifier; errors are measured before it, where they are not squeezed together."""


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


class SensitivityAnalysis:
    """Measures single changes of a program by their effect on its scores.

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
        self._wanted = self._results(program, self.judged)
        self._power = [max(_power(wanted), 1e-30) for wanted in self._wanted]

    def of_codes(self, value: Value, span: Range, bits: int = 8) -> float:
        """Noise, as a share of the signal's power, that codes of 8 or 16 bits for one tensor alone cause."""
        changed = copied(self.program)
        coded = Value(f"{value.name}/codes", INT16 if bits == 16 else INT8, value.shape, None, span.quantization(bits))
        back = Value(f"{value.name}/back", FLOAT, value.shape)
        for operation in changed.operations:
            operation.inputs = [back if operand is value else operand for operand in operation.inputs]
        at = next((i + 1 for i, op in enumerate(changed.operations) if value in op.outputs), 0)
        changed.operations[at:at] = [Operation("QUANTIZE", [value], [coded]), Operation("DEQUANTIZE", [coded], [back])]
        return self._noise(changed, [back if judged is value else judged for judged in self.judged])

    def of_weights(self, operation: Operation, values: Array, bias: Array) -> float:
        """Noise, as a share of the signal's power, that other weights and another bias for one layer alone cause."""
        changed = copied(self.program)
        replace_weights(changed.operations[self.program.operations.index(operation)], values, bias)
        return self._noise(changed, self.judged)

    def _noise(self, changed: Program, judged: Sequence[Value]) -> float:
        results = self._results(changed, judged)
        shares = [
            _power([a - b for a, b in zip(wanted, result, strict=True)]) / power
            for wanted, result, power in zip(self._wanted, results, self._power, strict=True)
        ]
        return max(shares, default=0.0)

    def _results(self, program: Program, judged: Sequence[Value]) -> list[list[Array]]:
        running = ProgramRunner(program, judged, self.threads)
        rows = [running(sample) for sample in self._samples]
        return [[row[index].astype(np.float64) for row in rows] for index in range(len(judged))]


def _power(arrays: Sequence[Array]) -> float:
    """Of scores without what all of them have in common, which says nothing; of a single number as it is."""
    return sum(float(((array - array.mean() if array.size > 1 else array) ** 2).sum()) for array in arrays)


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
        program: the program.
        coded: the operations that would compute with codes.
        sensitivity: the noise that each tensor's codes cause.
        most: the share of the program's work to give up for it.
        larger: by what share its weights may grow for it; those in float take four times the bytes.
    """
    room = larger * max(sum(_weights(operation) for operation in program.operations), 1)
    operations = [operation for operation in program.operations if operation in set(coded)]
    total = cost_model.total_multiplications(program.operations) or 1
    readers: dict[Value, set[int]] = {}
    for operation in program.operations:
        for value in operation.inputs:
            if value in sensitivity and value is not None:
                readers.setdefault(value, set()).add(id(operation))
    outputs = set(program.outputs)
    best: tuple[float, int, int] = (0.0, 0, 0)
    for start in range(len(operations)):
        inside: set[int] = set()
        spent = grown = 0
        for end in range(start, len(operations)):
            spent += cost_model.multiplications(operations[end])
            grown += cost_model.EXTRA_BYTES_OF_FLOAT_WEIGHT * _weights(operations[end])
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


def measure_sensitivity(state: QuantizationState) -> bool:
    """The step: the noise at the scores that the codes of each tensor cause alone."""
    program, ranges, options, coded = state.program, state.ranges, state.options, state.coded
    heavy = cost_model.total_multiplications(program.operations) > cost_model.HEAVY_MULTIPLICATIONS
    most = cost_model.HEAVY_SENSITIVITY_SAMPLES if heavy else cost_model.MOST_SENSITIVITY_SAMPLES
    touched = [value for value in program.inputs if value in ranges]
    for operation in coded:
        if OPERATOR_RULES[operation.code] is not OperatorRule.SAME or is_table(operation):
            touched += [value for value in operation.outputs if value in ranges]
    leaders, shared = shared_quantization(program, coded), dict[Value, Range]()
    for value, span in ranges.items():  # what is joined has the same codes, whatever range it has by itself
        leader = leaders.get(value, value)
        shared[leader] = shared[leader].union(span) if leader in shared else span
    known = state.resume.get("sensitivity")
    analysis: SensitivityAnalysis | None = None
    found = {}
    for done, value in enumerate(touched):
        name = str(done)
        if name not in known:
            analysis = analysis or SensitivityAnalysis(program, state.samples, min(state.count, most), options.threads)
            known[name] = np.array(analysis.of_codes(value, shared[leaders[value]], options.bits))
            state.resume.put("sensitivity", {name: known[name]})
        found[value] = float(known[name])
        state.progress("weighing each tensor", done + 1, len(touched))
    state.sensitivity = found
    return bool(found)


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
    if decibels(total) >= options.loud and spared < cost_model.MUCH_SPARED_SHARE * total:
        return False
    share = cost_model.total_multiplications(stretch) / cost_model.total_multiplications(program.operations)
    state.kept += stretch
    state.notes.append(
        f"kept {len(stretch)} operations in float ({share:.1%} of all multiplications), from "
        f"{stretch[0].outputs[0].name} to {stretch[-1].outputs[0].name}, because the rounding of all tensors "
        f"together would leave {decibels(total):.1f} dB; expect up to {cost_model.FLOAT_SLOWDOWN * share:.0%} more "
        f"time, {option('float_share')}=0 keeps everything in eight bits"
    )
    return True
