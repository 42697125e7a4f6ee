"""Runs programs on samples, and shows any of their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.litert import writer
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.shared import share_constants
from pocketgraph.litert.runner import PlainRunner
from pocketgraph.quantize.clipping import with_clipping_conversions
from pocketgraph.quantize.columns import with_columns_in_pairs

Array = np.ndarray[Any, Any]
Sample: TypeAlias = Sequence[Array]
Samples: TypeAlias = Callable[[], Iterable[Sample]]
"""Gives all samples anew each time it is called; a sample is one array for each input of the program."""
PER_TENSOR = 200  # bytes of a file for each tensor that is computed, besides its name, about
LONG_NAMES = 0.1  # of a file; longer ones are left out of it


def model_bytes(program: Program) -> bytes:
    """The program as a LiteRT model file."""
    shared = finished(program)
    return b"".join(bytes(piece) for piece in writer.pieces(shared, unnamed(shared)))


def finished(program: Program) -> Program:
    """The program as it is written into a file: a copy with the last rewritings, and equal constants once."""
    shared = with_columns_in_pairs(with_clipping_conversions(copied(program)))
    share_constants(shared)
    return shared


def unnamed(program: Program) -> set[Value]:
    """The constants, and, where their names would be much of the file, all tensors but those that go in and out."""
    made = [value for operation in program.operations for value in operation.outputs]
    constants = {v for o in program.operations for v in o.inputs if v is not None and v.constant is not None}
    size = sum(value.constant.nbytes for value in constants if value.constant is not None) + PER_TENSOR * len(made)
    if sum(len(value.name) for value in made) <= LONG_NAMES * size:
        return constants
    return constants | (set(made) - set(program.outputs))


def part(program: Program, outputs: Sequence[Value]) -> Program:
    """The part of a program that makes these of its tensors; the program stays as it is."""
    result = Program(list(program.inputs), list(outputs), list(program.operations))
    result.drop_unused()
    return result


def copied(program: Program) -> Program:
    """A program with operations of its own and the same tensors."""
    operations = [
        Operation(op.code, list(op.inputs), list(op.outputs), dict(op.options), op.nodes) for op in program.operations
    ]
    return Program(list(program.inputs), list(program.outputs), operations)


class Running:
    """A program that is ready to run.

    Args:
        program: the program.
        outputs: the tensors to compute, by default the program's outputs; its inputs may be among them.
        threads: how many threads to compute with.
    """

    def __init__(self, program: Program, outputs: Sequence[Value] | None = None, threads: int = 1) -> None:
        self.outputs = list(program.outputs if outputs is None else outputs)
        self._inputs = program.inputs
        computed = [v for v in dict.fromkeys(self.outputs) if v not in program.inputs and v.constant is None]
        self._computed = computed
        trimmed = part(program, computed)
        used = trimmed.uses()
        self._fed = [index for index, value in enumerate(program.inputs) if used[value]]
        trimmed.inputs = [program.inputs[index] for index in self._fed]
        self._runner = PlainRunner(model_bytes(trimmed), threads) if computed else None

    def __call__(self, sample: Sample) -> list[Array]:
        """The outputs for one sample, in the form the tensors have (int8 codes for quantized ones)."""
        known: dict[Value, Array] = dict(zip(self._inputs, sample, strict=True))
        if self._runner is not None:
            results = self._runner.run([np.ascontiguousarray(sample[index]) for index in self._fed])
            known.update(zip(self._computed, results, strict=True))
        return [known[value] if value.constant is None else value.constant.numpy() for value in self.outputs]

    def visit(self, sample: Sample, look: Callable[[Value, Array], None]) -> None:
        """Shows each output for one sample without copying it; ``look`` must not keep the array."""
        for value, array in zip(self._inputs, sample, strict=True):
            if value in self.outputs:
                look(value, array)
        if self._runner is not None:
            given = [np.ascontiguousarray(sample[index]) for index in self._fed]
            self._runner.visit(given, lambda index, array: look(self._computed[index], array))

    def numbers(self, sample: Sample) -> list[Array]:
        """The outputs as float32 where they are codes."""
        return [real(value, array) for value, array in zip(self.outputs, self(sample), strict=True)]


def real(value: Value, array: Array) -> Array:
    """What an array of codes stands for; other arrays as they are."""
    if value.quantization is None:
        return array
    from pocketgraph.quantize.ranges import numbers

    return numbers(array, value.quantization)


def as_fed(sample: Sample, inputs: Sequence[Value]) -> list[Array]:
    """A sample in numbers as a program takes it: in codes where its inputs are such."""
    from pocketgraph.quantize.ranges import codes

    return [
        array if value.quantization is None else codes(array, value.quantization, 8 * value.dtype.size)
        for array, value in zip(sample, inputs, strict=True)
    ]
