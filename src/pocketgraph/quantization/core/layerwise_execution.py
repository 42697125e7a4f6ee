"""Goes through a program once, layer by layer: with many samples side by side, or to look at large tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner, Sample, Samples, Views, real

MOST_BYTES = 1 << 28  # of the tensors that are held between two steps
FEWEST = 16  # samples that are held though they take more, up to the next limit
MOST_BYTES_OF_FEWEST = 1 << 30  # of these tensors; one sample is held whatever it takes
MOST_SHOWN_BYTES = 1 << 30  # of tensors that are shown at once; of more, some after the others
BYTES_SHOWN_TOGETHER = 1 << 28  # of those then

Place = tuple[int, int]
"""Where a tensor is made: which operation, -1 for the program's inputs, and which of its results."""


def samples_in_memory(program: Program, samples: Samples, count: int) -> list[Sample]:
    """As many of the samples as a walk through the program holds in memory: the first ones."""
    peak = max(peak_bytes(program), 1)
    most = max(min(FEWEST, MOST_BYTES_OF_FEWEST // peak), MOST_BYTES // peak, 1)
    return [[np.array(array) for array in sample] for sample in islice(samples(), min(count, most))]


def peak_bytes(program: Program) -> int:
    """The most bytes of tensors of one sample that must be held at once."""
    last: dict[Value, int] = {}
    for at, operation in enumerate(program.operations):
        last.update((value, at) for value in operation.inputs if value is not None and value.constant is None)
    held: dict[Value, int] = {value: _bytes(value) for value in program.inputs}
    most = now = sum(held.values())
    for at, operation in enumerate(program.operations):
        for value in operation.outputs:
            held[value] = _bytes(value)
            now += held[value]
        most = max(most, now)
        for value in [value for value in held if last.get(value, -1) <= at]:
            now -= held.pop(value)
    return most


def _bytes(value: Value) -> int:
    return value.size * value.dtype.numpy.itemsize


class LayerwiseExecution:
    """A place in a program, and for each sample the tensors that what follows will read.

    The program may be another one at each step as long as it has the same operations in the same order, and those
    that were passed have not changed: that is what a program is like whose weights get their codes one by one.

    Args:
        samples: what the program is fed.
        threads: how many threads to compute with.
        in_floats: as for ``ProgramRunner``.
    """

    def __init__(self, samples: Sequence[Sample], threads: int = 1, *, in_floats: bool = False) -> None:
        self._passed = 0
        self._threads, self._in_floats = threads, in_floats
        self._running: ProgramRunner | None = None  # where what is only shown lies
        self._held: list[dict[Place, Array]] = [
            {(-1, index): array for index, array in enumerate(sample)} for sample in samples
        ]

    def to(self, program: Program, value: Value) -> Iterator[Array]:
        """What ``value`` is for each sample, as numbers; the walk goes on behind the operation that makes it.

        Args:
            program: see above.
            value: one of its tensors, which the operations not yet passed read.
        """
        places = _places(program)
        self._advance(program, places, places[value][0] + 1)
        for held in self._held:
            yield real(value, held[places[value]])

    def shown(self, program: Program, values: Sequence[Value], later: Collection[Value] = ()) -> Iterator[Views]:
        """What these tensors are for each sample, as they are, until the walk goes on behind the last of them.

        Args:
            program: see above.
            values: some of its tensors.
            later: others that will be asked for, and are held until then.
        """
        places = _places(program)
        self._advance(program, places, max(places[value][0] for value in values) + 1, values, later)
        for held in self._held:
            yield {value: held[places[value]] for value in values}

    def _advance(
        self,
        program: Program,
        places: dict[Value, Place],
        end: int,
        shown: Collection[Value] = (),
        later: Collection[Value] = (),
    ) -> None:
        if end <= self._passed:
            return
        segment = program.operations[self._passed : end]
        read = _read(program.operations[end:]).union(later)
        inside, kept = _read(segment), read.union(shown)
        given = [value for value in places if value in inside and places[value][0] < self._passed]
        made = [value for operation in segment for value in operation.outputs if value in kept]
        self._drop_others(places, kept.union(inside))
        self._running = None  # with its tensors, before those of the next ones are there
        part = Program(given, made, list(segment))
        self._running = running = ProgramRunner(part, made, self._threads, in_floats=self._in_floats)
        is_copied = len(self._held) > 1
        for held in self._held:
            for value, array in running.views([held[places[value]] for value in given]).items():
                held[places[value]] = np.array(array) if is_copied or value in read else array
        self._drop_others(places, kept)
        self._passed = end

    def _drop_others(self, places: Mapping[Value, Place], live: Collection[Value]) -> None:
        kept = {places[value] for value in live if value in places}
        for held in self._held:
            for place in [place for place in held if place not in kept]:
                del held[place]


class ShownProgram:
    """A program whose tensors are looked at: all at once, or group by group where they would take much memory.

    Args:
        groups: tensors of it that are shown together, in running order; see ``groups_to_show``.
        threads: how many threads to compute with.
        in_floats: as for ``ProgramRunner``.
    """

    def __init__(
        self, program: Program, groups: Sequence[Sequence[Value]], threads: int = 1, *, in_floats: bool = False
    ) -> None:
        self._program, self._threads, self._in_floats = program, threads, in_floats
        self._groups = [[value for value in group if value.constant is None] for group in groups]
        is_one = len(groups) == 1
        self._whole = ProgramRunner(program, self._groups[0], threads, in_floats=in_floats) if is_one else None

    def __call__(self, sample: Sample) -> Iterator[Views]:
        """The tensors of each group for a sample, copied."""
        if self._whole is not None:
            yield dict(zip(self._whole.outputs, self._whole(sample), strict=True))
            return
        walk = LayerwiseExecution([sample], self._threads, in_floats=self._in_floats)
        for at, group in enumerate(self._groups):
            later = {value for others in self._groups[at + 1 :] for value in others}
            yield from walk.shown(self._program, group, later) if group else iter([{}])

    def views(self, sample: Sample) -> Iterator[Views]:
        """The same, each only until the next is asked for, or the next sample."""
        return self(sample) if self._whole is None else iter([self._whole.views(sample)])


def groups_to_show(program: Program, together: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """Tensors in groups of which each fits in memory: one group of all where they do.

    Args:
        program: whose tensors they are.
        together: those that must be shown at once, such as a layer's results in two forms.
    """
    places = _places(program)
    ordered = sorted(
        together, key=lambda values: max((places.get(value, (-1, 0)) for value in values), default=(-1, 0))
    )
    if bytes_of(together) <= MOST_SHOWN_BYTES:
        return [[value for values in together for value in values]]
    groups: list[list[Value]] = []
    room = 0
    for values in ordered:
        taken = bytes_of([values])
        if taken > room:
            groups.append([])
            room = BYTES_SHOWN_TOGETHER
        groups[-1] += values
        room -= taken
    return groups


def bytes_of(together: Sequence[Sequence[Value]]) -> int:
    """How many all these tensors have."""
    return sum(_bytes(value) for values in together for value in values)


def _places(program: Program) -> dict[Value, Place]:
    found: dict[Value, Place] = {value: (-1, index) for index, value in enumerate(program.inputs)}
    for at, operation in enumerate(program.operations):
        found.update((value, (at, index)) for index, value in enumerate(operation.outputs))
    return found


def _read(operations: Sequence[Operation]) -> set[Value]:
    """What these operations read."""
    return {value for operation in operations for value in operation.inputs if value is not None}
