"""A program in segments, which can be run on from any cut with other tensors than those that came there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from threading import Lock
from typing import NamedTuple, TypeAlias

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner, Sample

TOGETHER = 8  # segments that are also one, so that fewer tensors move from one to the next

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

    Several threads may go through it: while one is in a segment, the others are in those before or behind it. On the
    way to the end they go through many segments at once where they can.

    Args:
        cuts: the tensors; the program's inputs are cuts of their own.
        outputs: what it is to give.
        threads: how many threads to compute with.
        is_kept: whether all segments stay in memory, each with its tensors; else the way to the end from a cut is made
            anew each time, as one program whose tensors take turns.
    """

    def __init__(
        self,
        program: Program,
        cuts: Iterable[Value],
        outputs: Sequence[Value],
        threads: int = 1,
        *,
        is_kept: bool = True,
    ) -> None:
        operations = program.operations
        makers = {value: at for at, operation in enumerate(operations) for value in operation.outputs}
        makers.update((value, -1) for value in program.inputs)
        ends = sorted({0, *(makers[value] + 1 for value in cuts if value in makers), len(operations)})
        self._inputs, self._outputs = program.inputs, list(outputs)
        self._place = {value: ends.index(makers[value] + 1) for value in cuts if value in makers}

        def segment(start: int, end: int) -> Segment:
            inside, read = operations[start:end], set(_listed(operations[end:])) | set(outputs)
            made = [value for operation in inside for value in operation.outputs]
            given = [value for value in dict.fromkeys(_listed(inside)) if makers.get(value, end) < start]
            kept = [value for value in made if value in read]
            running = ProgramRunner(Program(given, kept, list(inside)), kept, threads, is_kept=is_kept)
            return Segment(given, kept, running, read, Lock())

        self._segments = [segment(start, end) for start, end in pairwise(ends)]
        last = len(self._segments) - TOGETHER if is_kept else -1
        self._to_the_end = None if is_kept else lambda place: segment(ends[place], ends[-1])
        self._joined = {at: segment(ends[at], ends[at + TOGETHER]) for at in range(0, last + 1, TOGETHER)}

    def place(self, value: Value) -> int:
        """How many segments come before the cut behind a tensor."""
        return self._place.get(value, 0)

    def begin(self, sample: Sample) -> Held:
        """What is held at the beginning."""
        return dict(zip(self._inputs, sample, strict=True))

    def advance(self, held: Held, place: int) -> Held:
        """What is held a segment later."""
        return self._behind(self._segments[place], held)

    def _behind(self, segment: Segment, held: Mapping[Value, Array]) -> Held:
        with segment.lock:
            results = segment.running([held[value] for value in segment.given])
        known = {**held, **dict(zip(segment.made, results, strict=True))}
        return {value: array for value, array in known.items() if value in segment.read}

    def finish(self, held: Mapping[Value, Array], place: int) -> list[Array]:
        """The program's outputs, from what is held after so many segments."""
        known = dict(held)
        if self._to_the_end is not None and place < len(self._segments):
            known, place = self._behind(self._to_the_end(place), known), len(self._segments)
        while place < len(self._segments):
            joined = self._joined.get(place)
            known = self._behind(joined or self._segments[place], known)
            place += TOGETHER if joined else 1
        return [known[value] for value in self._outputs]


def _listed(operations: Iterable[Operation]) -> list[Value]:
    return [value for operation in operations for value in operation.inputs if value is not None]
