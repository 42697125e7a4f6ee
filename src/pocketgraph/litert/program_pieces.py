"""Programs in two pieces of about as many weights, which two threads write and open at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pocketgraph.litert.code_version import short_digest
from pocketgraph.litert.running.runner import Runner

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.program import Program, Value


LEAST_SHARE = 0.4  # of the weights, in either piece
MOST_CROSSING = 8  # values that one piece hands to the other


class Pieces(NamedTuple):
    """A program in two.

    Attributes:
        first, second: programs.
        taken: where the inputs of the second come from: ("input", place) or ("first", place).
    """

    first: Program
    second: Program
    taken: list[tuple[str, int]]


def cut(program: Program) -> Pieces | None:
    """The program in two pieces; None where there is no good place between them.

    Args:
        program: its outputs are all computed by operations.
    """
    from pocketgraph.litert.program import Program

    operations = program.operations
    total = list(accumulate(_fresh_bytes(program)))
    made_at = {value: place for place, operation in enumerate(operations) for value in operation.outputs}
    last_read: dict[Value, int] = {}
    for place, operation in enumerate(operations):
        last_read.update((value, place) for value in operation.inputs if value is not None and value in made_at)
    last_read.update((value, len(operations)) for value in program.outputs)
    best: tuple[int, int] | None = None
    for place in range(1, len(operations)):
        if LEAST_SHARE * total[-1] <= total[place - 1] <= (1 - LEAST_SHARE) * total[-1]:
            over = [value for value, at in made_at.items() if at < place <= last_read.get(value, -1)]
            is_plain = all(value.dtype.name == "float" and value.quantization is None for value in over)
            if is_plain and len(over) <= MOST_CROSSING and not any(made_at[v] < place for v in program.outputs):
                size = sum(value.size for value in over)
                best = min(best or (size, place), (size, place))
    if best is None:
        return None
    place = best[1]
    over = [value for value, at in made_at.items() if at < place <= last_read.get(value, -1)]
    needed = {value for operation in operations[place:] for value in operation.inputs}
    also = [index for index, value in enumerate(program.inputs) if value in needed]
    first = Program(
        [value for value in program.inputs if any(value in each.inputs for each in operations[:place])],
        over,
        operations[:place],
    )
    if len(first.inputs) != len(program.inputs) or not over:
        return None
    second = Program([*over, *(program.inputs[index] for index in also)], program.outputs, operations[place:])
    return Pieces(first, second, [*(("first", at) for at in range(len(over))), *(("input", at) for at in also)])


def _fresh_bytes(program: Program) -> list[int]:
    """For each operation the bytes of constants that none before it reads."""
    seen: set[Value] = set()
    sizes = []
    for operation in program.operations:
        fresh = {v for v in operation.inputs if v is not None and v.constant is not None} - seen
        seen |= fresh
        sizes.append(sum(v.constant.nbytes for v in fresh if v.constant is not None))
    return sizes


def names(name: str) -> tuple[str, str]:
    """The names of a part's pieces."""
    return tuple(short_digest(f"{name} piece {number}".encode(), 20) for number in (1, 2))  # type: ignore[return-value]


class PiecesRunner(Runner):
    """Runs one piece after the other.

    Args:
        first, second: the pieces.
        taken: as in ``Pieces``.
        shapes: of the results.
    """

    def __init__(
        self, first: Executable, second: Executable, taken: Sequence[tuple[str, int]], shapes: Sequence[Sequence[int]]
    ) -> None:
        self._first, self._second = first, second
        self._taken = [(kind, int(place)) for kind, place in taken]
        self._shapes = [tuple(shape) for shape in shapes]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        between = {"input": list(inputs), "first": self._first.computed(inputs)}
        results = self._second.computed([between[kind][place] for kind, place in self._taken])
        return [np.reshape(result, shape) for result, shape in zip(results, self._shapes, strict=True)]

    def close(self) -> None:
        self._first.close()
        self._second.close()
