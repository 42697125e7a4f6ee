"""A pattern as small steps over bytes with forks between them (an NFA): what a matcher follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from pocketgraph.budgets import check_time
from pocketgraph.graph.groups import by_key
from pocketgraph.kernels.text.regex import syntax_tree
from pocketgraph.kernels.text.regex.character_classes import Ranges, utf8_sequences
from pocketgraph.kernels.text.regex.syntax import PatternError

MOST_STEPS = 100_000
"""Of one pattern: some 25 MB. RE2 has a bound of this order too."""
BEGIN, END, LINE_BEGIN, LINE_END, BORDER, NO_BORDER = (1 << place for place in range(6))
CONDITIONS = {
    "begin": BEGIN,
    "end": END,
    "line begin": LINE_BEGIN,
    "line end": LINE_END,
    "border": BORDER,
    "no border": NO_BORDER,
}


class Take(NamedTuple):
    """Takes one byte; (first byte, last byte, next step) of each way on."""

    ways: tuple[tuple[int, int, int], ...]


class Fork(NamedTuple):
    """Goes on at ``first``, and where that leads to no match, at ``second``."""

    first: int
    second: int


class Save(NamedTuple):
    """Notes the place in the text."""

    slot: int
    then: int


class Check(NamedTuple):
    """Goes on only where the conditions hold (bits of ``CONDITIONS``)."""

    condition: int
    then: int


class Accept(NamedTuple):
    """The end."""


Step: TypeAlias = Take | Fork | Save | Check | Accept


class Nfa:
    """The steps of a pattern, made from the last to the first: each knows what follows it.

    Attributes:
        steps: the steps; ``steps[0]`` is the match.
        start: where it begins.
        groups: how many groups the pattern has; group 0 is the whole match.
        has_conditions: whether any step looks at where in the text it is.
    """

    def __init__(self, expression: syntax_tree.Expression, groups: int) -> None:
        self.steps: list[Step] = [Accept()]
        self.groups = groups
        self._same: dict[Take, int] = {}
        self.start = self._of(expression, 0)
        self.has_conditions = any(isinstance(step, Check) for step in self.steps)

    def _add(self, step: Step) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise PatternError("pattern too large - compile failed")
        if not len(self.steps) & 0x3FF:
            check_time()
        self.steps.append(step)
        return len(self.steps) - 1

    def _of(self, part: syntax_tree.Expression, then: int) -> int:
        """Adds the steps of a part, before the step ``then``; gives the first of them."""
        if isinstance(part, syntax_tree.Characters):
            return self._of_sequences(utf8_sequences(part.ranges), then)
        if isinstance(part, syntax_tree.AnyByte):
            return self._add(Take(((0, 255, then),)))
        if isinstance(part, syntax_tree.Assertion):
            return self._add(Check(CONDITIONS[part.kind], then))
        if isinstance(part, syntax_tree.Sequence):
            for each in reversed(part.parts):
                then = self._of(each, then)
            return then
        if isinstance(part, syntax_tree.Choice):
            ways = [self._of(each, then) for each in reversed(part.parts)]
            first = ways[0]
            for way in ways[1:]:
                first = self._add(Fork(way, first))
            return first
        if isinstance(part, syntax_tree.Group):
            end = self._add(Save(2 * part.number + 1, then))
            return self._add(Save(2 * part.number, self._of(part.part, end)))
        return self._of_repeat(part, then)

    def _of_repeat(self, part: syntax_tree.Repeat, then: int) -> int:
        entry, least = then, part.least
        if part.most is None:
            loop = self._add(Accept())  # until it is known what it forks to
            body = self._of(part.part, loop)
            self.steps[loop] = self._fork(body, then, part.is_greedy)
            if least:
                entry, least = body, least - 1
            elif may_be_empty(part.part):  # a round of nothing may come first, but no loop of it
                entry = self._add(self._fork(body, then, part.is_greedy))
            else:
                entry = loop
        else:
            for _ in range(part.most - least):
                entry = self._add(self._fork(self._of(part.part, entry), then, part.is_greedy))
        for _ in range(least):
            entry = self._of(part.part, entry)
        return entry

    def _fork(self, body: int, then: int, is_greedy: bool) -> Fork:
        return Fork(body, then) if is_greedy else Fork(then, body)

    def _of_sequences(self, sequences: Iterable[Ranges], then: int) -> int:
        """One step for all first bytes, with a step behind each for the bytes that may follow it."""
        behind = by_key((first, tuple(rest)) for first, *rest in sequences)
        ways = [
            (low, high, self._of_sequences(rests, then) if rests[0] else then)
            for (low, high), rests in behind.items()
        ]  # fmt: skip
        step = Take(tuple(ways))
        if step not in self._same:
            self._same[step] = self._add(step)
        return self._same[step]


def may_be_empty(part: syntax_tree.Expression) -> bool:
    """Whether a part can match without a character."""
    if isinstance(part, (syntax_tree.Characters, syntax_tree.AnyByte)):
        return False
    if isinstance(part, syntax_tree.Sequence):
        return all(map(may_be_empty, part.parts))
    if isinstance(part, syntax_tree.Choice):
        return any(map(may_be_empty, part.parts))
    if isinstance(part, syntax_tree.Repeat):
        return part.least == 0 or may_be_empty(part.part)
    return may_be_empty(part.part) if isinstance(part, syntax_tree.Group) else True


def conditions_at(text: bytes, place: int) -> int:
    """Which conditions hold between two bytes of a text."""
    before, after = text[place - 1 : place] if place else b"", text[place : place + 1]
    found = (BEGIN | LINE_BEGIN) * (not before) | (END | LINE_END) * (not after)
    found |= LINE_BEGIN * (before == b"\n") | LINE_END * (after == b"\n")
    is_border = (before.isalnum() or before == b"_") != (after.isalnum() or after == b"_")
    return found | (BORDER if is_border else NO_BORDER)


def following(steps: Sequence[Step], start: int, conditions: int, seen: set[int]) -> Iterable[int]:
    """The steps that take a byte, and the match, that are reached from ``start`` without one; the better ones first."""
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        step = steps[at]
        if isinstance(step, Fork):
            waiting += (step.second, step.first)
        elif isinstance(step, Save):
            waiting.append(step.then)
        elif isinstance(step, Check):
            if conditions & step.condition:
                waiting.append(step.then)
        else:
            yield at
