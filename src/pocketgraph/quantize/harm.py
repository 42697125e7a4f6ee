"""What eight bits in one place alone do to the outputs, and which operations to keep in float for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT8, INT16
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantize.operators import KINDS, Kind, weights
from pocketgraph.quantize.ranges import Range
from pocketgraph.quantize.running import Array, Running, Samples, copied

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


IN_FLOAT = 3  # bytes more of a weight


class Harm:
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

    def _noise(self, changed: Program, judged: Sequence[Value]) -> float:
        results = self._results(changed, judged)
        shares = [
            _power([a - b for a, b in zip(wanted, result, strict=True)]) / power
            for wanted, result, power in zip(self._wanted, results, self._power, strict=True)
        ]
        return max(shares, default=0.0)

    def _results(self, program: Program, judged: Sequence[Value]) -> list[list[Array]]:
        running = Running(program, judged, self.threads)
        rows = [running(sample) for sample in self._samples]
        return [[row[index].astype(np.float64) for row in rows] for index in range(len(judged))]


def _power(arrays: Sequence[Array]) -> float:
    """Of scores without what all of them have in common, which says nothing; of a single number as it is."""
    return sum(float(((array - array.mean() if array.size > 1 else array) ** 2).sum()) for array in arrays)


def work(operation: Operation) -> int:
    """Multiplications of an operation, about; elements for one that has none."""
    result = operation.outputs[0]
    if KINDS.get(operation.code) is Kind.WEIGHTED:
        kernel = weights(operation)
        if operation.code == "TRANSPOSE_CONV":
            source = operation.inputs[2]
            assert source is not None
            return source.size * kernel.size // kernel.shape[3]
        per = (
            kernel.shape[1] * kernel.shape[2]
            if operation.code == "DEPTHWISE_CONV_2D"
            else kernel.size // kernel.shape[0]
        )
        return result.size * per
    return result.size


def worst_stretch(
    program: Program, coded: Collection[Operation], harm: Mapping[Value, float], most: float, larger: float = math.inf
) -> list[Operation]:
    """The operations in a row to keep in float that spare the most harm for their work.

    A tensor is spared when all that make and read it compute in float.

    Args:
        program: the program.
        coded: the operations that would compute with codes.
        harm: the noise that each tensor's codes cause.
        most: the share of the program's work to give up for it.
        larger: by what share its weights may grow for it; those in float take four times the bytes.
    """
    room = larger * max(sum(_weights(operation) for operation in program.operations), 1)
    operations = [operation for operation in program.operations if operation in set(coded)]
    total = sum(work(operation) for operation in program.operations) or 1
    readers: dict[Value, set[int]] = {}
    for operation in program.operations:
        for value in operation.inputs:
            if value in harm and value is not None:
                readers.setdefault(value, set()).add(id(operation))
    outputs = set(program.outputs)
    best: tuple[float, int, int] = (0.0, 0, 0)
    for start in range(len(operations)):
        inside: set[int] = set()
        spent = grown = 0
        for end in range(start, len(operations)):
            spent += work(operations[end])
            grown += IN_FLOAT * _weights(operations[end])
            if spent > most * total or grown > room:
                break
            inside.add(id(operations[end]))
            spared = sum(
                harm.get(value, 0.0)
                for operation in operations[start : end + 1]
                for value in operation.outputs
                if value not in outputs and readers.get(value) and readers[value] <= inside
            )
            if spared > best[0] * 1.02:
                best = spared, start, end + 1
    return operations[best[1] : best[2]]


def _weights(operation: Operation) -> int:
    return weights(operation).size if KINDS.get(operation.code) is Kind.WEIGHTED else 0


def decibels(noise: float) -> float:
    """Signal to noise of a noise that is a share of the signal."""
    return math.inf if noise <= 0 else -10 * math.log10(noise)
