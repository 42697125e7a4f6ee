"""A program in segments, which can be run on from any cut with other tensors than those that came there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from threading import Lock
from typing import NamedTuple, TypeAlias

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner, Sample

Held: TypeAlias = dict[Value, Array]
"""The tensors that what follows a cut reads."""


class Segment(NamedTuple):
    """Operations between two cuts.

    Attributes:
        given, made: the tensors that go in, and those that come out and are read later.
        running: computes them.
        read: what is read behind the segment.
        lock: held by the thread that is in the segment.
    """

    given: list[Value]
    made: list[Value]
    running: ProgramRunner
    read: set[Value]
    lock: Lock


class SegmentedExecution:
    """A program that is cut behind the operations that make some of its tensors.

    Several threads may go through it: while one is in a segment, the others are in those before or behind it.

    Args:
        program: the program.
        cuts: the tensors; the program's inputs are cuts of their own.
        outputs: what it is to give.
        threads: how many threads to compute with.
    """

    def __init__(self, program: Program, cuts: Iterable[Value], outputs: Sequence[Value], threads: int = 1) -> None:
        operations = program.operations
        makers = {value: at for at, operation in enumerate(operations) for value in operation.outputs}
        ends = sorted({0, *(makers[value] + 1 for value in cuts if value in makers), len(operations)})
        self._inputs, self._outputs = program.inputs, list(outputs)
        self._place = {value: ends.index(makers[value] + 1) for value in cuts if value in makers}
        self._segments: list[Segment] = []
        made_before = set(program.inputs)
        for start, end in pairwise(ends):
            inside, read = operations[start:end], set(_listed(operations[end:])) | set(outputs)
            given = [value for value in dict.fromkeys(_listed(inside)) if value in made_before]
            made = [value for operation in inside for value in operation.outputs]
            made_before.update(made)
            kept = [value for value in made if value in read]
            running = ProgramRunner(Program(given, kept, list(inside)), kept, threads)
            self._segments.append(Segment(given, kept, running, read, Lock()))

    def place(self, value: Value) -> int:
        """How many segments come before the cut behind a tensor."""
        return self._place.get(value, 0)

    def begin(self, sample: Sample) -> Held:
        """What is held at the beginning."""
        return dict(zip(self._inputs, sample, strict=True))

    def advance(self, held: Held, place: int) -> Held:
        """What is held a segment later."""
        segment = self._segments[place]
        with segment.lock:
            results = segment.running([held[value] for value in segment.given])
        known = {**held, **dict(zip(segment.made, results, strict=True))}
        return {value: array for value, array in known.items() if value in segment.read}

    def finish(self, held: Mapping[Value, Array], place: int) -> list[Array]:
        """The program's outputs, from what is held after so many segments."""
        known = dict(held)
        for at in range(place, len(self._segments)):
            known = self.advance(known, at)
        return [known[value] for value in self._outputs]


def _listed(operations: Iterable[Operation]) -> list[Value]:
    return [value for operation in operations for value in operation.inputs if value is not None]
