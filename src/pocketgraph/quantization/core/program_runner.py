"""Runs programs on samples, and shows any of their tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TypeAlias

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph.dtype import FLOAT, INT4, INT16, UINT8
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operator_traits import WEIGHTED
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.weight_folding import float_constant
from pocketgraph.litert.running.runner import PlainRunner, words
from pocketgraph.quantization.core.thread_map import mapped
from pocketgraph.quantization.program_pass import subprogram
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes

Sample: TypeAlias = Sequence[Array]
Samples: TypeAlias = Callable[[], Iterable[Sample]]
"""Gives all samples anew each time it is called; a sample is one array for each input of the program."""
Views: TypeAlias = Mapping[Value, Array]
"""Tensors by their values, not copied."""
WORTH_THREADS = 1 << 20  # numbers in all that are looked at, from which several threads do it
SUMS = WEIGHTED | {"BATCH_MATMUL"}


class ProgramRunner:
    """A program that is ready to run.

    Args:
        outputs: the tensors to compute, by default the program's outputs; its inputs may be among them.
        threads: how many threads to compute with.
        is_kept: whether it stays in memory, with its tensors, between two samples; else it is made anew for each.
        in_floats: whether sums of int16 codes are quick instead of LiteRT's own; see ``with_sums_in_floats``.
    """

    def __init__(
        self,
        program: Program,
        outputs: Sequence[Value] | None = None,
        threads: int = 1,
        *,
        is_kept: bool = True,
        in_floats: bool = False,
    ) -> None:
        self.outputs = list(program.outputs if outputs is None else outputs)
        self._inputs = program.inputs
        computed = [v for v in dict.fromkeys(self.outputs) if v not in program.inputs and v.constant is None]
        self._computed = computed
        trimmed = subprogram(program, computed)
        used = trimmed.uses()
        self._fed = [index for index, value in enumerate(program.inputs) if used[value]]
        trimmed.inputs = [program.inputs[index] for index in self._fed]
        self._content = model_bytes(with_sums_in_floats(trimmed) if in_floats else trimmed) if computed else b""
        self._threads = threads
        self._runner = PlainRunner(self._content, threads) if computed and is_kept else None

    def another(self) -> ProgramRunner:
        """One that another thread may run at the same time; both have one file in memory."""
        made = copy(self)
        made._runner = PlainRunner(self._content, self._threads) if self._content else None
        return made

    def __call__(self, sample: Sample) -> list[Array]:
        """The outputs for one sample, in the form the tensors have (int8 codes for quantized ones).

        Raises:
            RunError: LiteRT refuses the sample, such as one with indices that are out of range.
        """
        known: dict[Value, Array] = dict(zip(self._inputs, sample, strict=True))
        if self._content:
            with _clear_refusals():
                results = (self._runner or PlainRunner(self._content, self._threads)).run(self._given(sample))
            known.update(zip(self._computed, results, strict=True))
        return [known[value] if value.constant is None else value.constant.numpy() for value in self.outputs]

    def views(self, sample: Sample) -> Views:
        """The outputs for one sample, but constants, without copying them: until it runs again."""
        wanted = set(self.outputs)
        views = {value: array for value, array in zip(self._inputs, sample, strict=True) if value in wanted}
        if self._runner is not None:
            with _clear_refusals():
                views.update(zip(self._computed, self._runner.views(self._given(sample)), strict=True))
        return views

    def _given(self, sample: Sample) -> list[Array]:
        return [_plain(sample[index], self._inputs[index]) for index in self._fed]

    def numbers(self, sample: Sample) -> list[Array]:
        """The outputs as float32 where they are codes."""
        return [real(value, array) for value, array in zip(self.outputs, self(sample), strict=True)]


def with_sums_in_floats(program: Program) -> Program:
    """The program with sums of products of int16 codes worked out in floats, some twenty times as fast in LiteRT.

        x16 ─CONV_2D─ y16     becomes     x16 ─DEQUANTIZE─ CONV_2D ─QUANTIZE─ y16

    A result may be the next code, as LiteRT rounds the factor of such sums to 15 bits. Weights of four bits are left.
    """
    floats: dict[Value, Value] = {}
    result = Program(program.inputs, program.outputs, rounded=program.rounded)
    for operation in program.operations:
        made = operation.outputs[0]
        coded = [value for value in operation.inputs if value is not None and value.quantization is not None]
        is_coded = made.dtype is INT16 and made.quantization is not None
        if operation.code not in SUMS or not is_coded or any(value.dtype is INT4 for value in coded):
            result.operations.append(operation)
            continue
        for value in coded:
            if value in floats:
                continue
            if value.constant is not None:
                floats[value] = float_constant(f"{value.name}/float", _numbers(value))
                continue
            floats[value] = Value(f"{value.name}/float", FLOAT, value.shape)
            result.operations.append(Operation("DEQUANTIZE", [value], [floats[value]]))
        total = Value(f"{made.name}/float", FLOAT, made.shape)
        operands = [value if value is None else floats.get(value, value) for value in operation.inputs]
        result.operations += [
            operation.replace(inputs=operands, outputs=[total]),
            Operation("QUANTIZE", [total], [made]),
        ]
    return result


def _numbers(value: Value) -> Array:
    """What the codes of a constant stand for, each by the scale of its channel; float64, without zero points."""
    codes, coding = value.content.numpy(), value.coding
    across = [-1 if axis == coding.axis else 1 for axis in range(codes.ndim)]
    scales = np.array(coding.scales, np.float64)
    numbers: Array = codes * (scales.reshape(across) if scales.size > 1 else scales)
    return numbers


def look_at(views: Views, look: Callable[[Value, Views], None], threads: int) -> None:
    """Has ``look``, which is told a tensor and given all, see each: by several threads where these are large."""
    is_worth_threads = sum(array.size for array in views.values()) >= WORTH_THREADS
    mapped(lambda value: look(value, views), list(views), threads if is_worth_threads else 1)


@contextlib.contextmanager
def _clear_refusals() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        hint = "indices, for example, must be in range; give samples with values that the model takes"
        raise RunError(f"LiteRT does not run the model on this sample: {words(error)}", hint=hint) from error


def _plain(array: Array, value: Value) -> Array:
    """What LiteRT is fed: floats of 16 bits as the float32 that programs take for them."""
    return np.asarray(array, value.dtype.numpy if value.dtype.is_floating else None, order="C")


def real(value: Value, array: Array) -> Array:
    """What an array of codes stands for; other arrays as they are."""
    if value.quantization is None:
        return array
    from pocketgraph.quantization.core.value_range import dequantized

    return dequantized(array, value.quantization)


def as_fed(sample: Sample, inputs: Sequence[Value]) -> list[Array]:
    """A sample in numbers as a program takes it: in codes where its inputs are such."""
    from pocketgraph.quantization.core.value_range import quantized, quantized_bytes

    fed = []
    for array, value in zip(sample, inputs, strict=True):
        if value.quantization is None:
            fed.append(_plain(array, value))
        elif value.dtype is UINT8:
            fed.append(quantized_bytes(array, value.quantization))
        else:
            fed.append(quantized(array, value.quantization, 8 * value.dtype.size))
    return fed
