"""Guards: what has to hold of sizes so that a function of them takes the same way as it took for others.

A function that looks at every operator of a program is run once with sizes that note what is computed of them and what
is asked about them. For sizes about which the answers are the same its result is the same: of an encoder of hundreds of
operators some tens of comparisons are left, such as that the mask is as long as the words.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

Rows: TypeAlias = "Sequence[Sequence[int]]"
PLAIN_CALLS = 2  # that said yes, before one is noted, which takes some times as long
MOST_NOTED = 4  # ways that a function takes; for sizes that take others it is run


class Guarded:
    """A function of sizes that is asked about many of them.

    Args:
        function: says whether something takes inputs of these shapes, and these numbers. It depends on nothing else.
    """

    def __init__(self, function: Callable[[Rows, Rows], bool]) -> None:
        self._function = function
        self._plain = 0
        self._guards: list[tuple[list[int], Callable[[list[int]], bool]]] = []

    def __call__(self, shapes: Rows, numbers: Rows) -> bool:
        """What the function says."""
        if self._plain < PLAIN_CALLS:
            says_yes = self._function(shapes, numbers)
            self._plain += says_yes
            return says_yes
        ranks = [len(shapes), *map(len, shapes), *map(len, numbers)]
        given = [size for row in (*shapes, *numbers) for size in row]
        if any(known == ranks and hold(given) for known, hold in self._guards):
            return True
        if len(self._guards) < MOST_NOTED:
            notes = Notes()
            noted = [[[notes.given(size) for size in row] for row in rows] for rows in (shapes, numbers)]
            if self._function(*cast("list[Rows]", [[*map(tuple, rows)] for rows in noted])):
                self._guards.append((ranks, notes.guards()))
                return True
        return self._function(shapes, numbers)


class Notes:
    """What was computed of some sizes and asked about them, as lines of Python."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}
        self._names: dict[str, str] = {}  # of what is computed, which is computed once
        self._count = 0

    def given(self, size: int) -> NotedSize:
        """One of the sizes that the function is given, in the guards' order."""
        self._count += 1
        return NotedSize(self, f"s{self._count - 1}", size)

    def computed(self, expression: str, number: int) -> NotedSize:
        """What follows from sizes."""
        name = self._names.get(expression)
        if name is None:
            name = self._names[expression] = f"n{len(self._names)}"
            self._lines[f"{name} = {expression}"] = None
        return NotedSize(self, name, number)

    def asked(self, question: str, *, answer: bool) -> bool:
        """The answer, which is a guard from now on."""
        self._lines[f"if {'not ' if answer else ''}({question}): return False"] = None
        return answer

    def guards(self) -> Callable[[list[int]], bool]:
        """Says whether all answers are the same for other sizes; their count is the same."""
        names = ", ".join(f"s{place}" for place in range(self._count))
        lines = [f"[{names}] = sizes", *self._lines, "return True"]
        made: dict[str, Any] = {}
        exec("\n    ".join(["def hold(sizes):", *lines]), made)
        return cast("Callable[[list[int]], bool]", made["hold"])


def _computed_by(sign: str, compute: Callable[[int, int], int], *, turned: bool = False) -> Any:
    def method(self: NotedSize, other: object) -> Any:
        if not isinstance(other, (int, NotedSize)):
            return NotImplemented
        one, two = (other, self) if turned else (self, other)
        return self.notes.computed(f"{_text(one)} {sign} {_text(two)}", compute(_number(one), _number(two)))

    return method


def _asked_by(sign: str, ask: Callable[[int, int], bool]) -> Any:
    def method(self: NotedSize, other: object) -> Any:
        if not isinstance(other, (int, NotedSize)):
            return NotImplemented
        answer = ask(self.number, _number(other))
        one, two = _text(self), _text(other)
        return answer if one == two else self.notes.asked(f"{one} {sign} {two}", answer=answer)

    return method


class NotedSize:
    """A size that tells its notes what becomes of it; else it is as an int is, but that it cannot be in a set.

    Attributes:
        notes: whose it is.
        name: its name there.
        number: what it is while the function is noted.
    """

    def __init__(self, notes: Notes, name: str, number: int) -> None:
        self.notes, self.name, self.number = notes, name, number

    __add__, __radd__ = _computed_by("+", operator.add), _computed_by("+", operator.add, turned=True)
    __sub__, __rsub__ = _computed_by("-", operator.sub), _computed_by("-", operator.sub, turned=True)
    __mul__, __rmul__ = _computed_by("*", operator.mul), _computed_by("*", operator.mul, turned=True)
    __mod__, __rmod__ = _computed_by("%", operator.mod), _computed_by("%", operator.mod, turned=True)
    __floordiv__ = _computed_by("//", operator.floordiv)
    __rfloordiv__ = _computed_by("//", operator.floordiv, turned=True)
    __eq__, __ne__ = _asked_by("==", operator.eq), _asked_by("!=", operator.ne)
    __lt__, __le__ = _asked_by("<", operator.lt), _asked_by("<=", operator.le)
    __gt__, __ge__ = _asked_by(">", operator.gt), _asked_by(">=", operator.ge)
    __hash__ = None  # type: ignore[assignment]

    def __divmod__(self, other: int) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: int) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return 0 - self

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __index__(self) -> int:
        """The number, where nothing else will do: the guards then hold for it alone."""
        self.notes.asked(f"{self.name} == {self.number}", answer=True)
        return self.number


def _number(value: int | NotedSize) -> int:
    return value.number if isinstance(value, NotedSize) else value


def _text(value: int | NotedSize) -> str:
    return value.name if isinstance(value, NotedSize) else f"({int(value)})"
