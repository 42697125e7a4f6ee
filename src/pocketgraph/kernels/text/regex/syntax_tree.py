"""What a pattern says, as a tree."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pocketgraph.kernels.text.regex.character_classes import Ranges


class Characters(NamedTuple):
    """One character out of a set of code points."""

    ranges: Ranges


class AnyByte(NamedTuple):
    """One byte, whatever it is (``\\C``)."""


class Assertion(NamedTuple):
    """A place in the text: ``\\A``, ``\\z``, ``^`` and ``$`` of lines, ``\\b``, ``\\B``."""

    kind: str


class Sequence(NamedTuple):
    """One after the other; nothing at all when there are none."""

    parts: tuple[Expression, ...] = ()


class Choice(NamedTuple):
    """One of several, the first that leads to a match."""

    parts: tuple[Expression, ...]


class Repeat(NamedTuple):
    """Again and again, ``least`` to ``most`` times (None: any number), as often or as seldom as it can."""

    part: Expression
    least: int
    most: int | None
    is_greedy: bool


class Group(NamedTuple):
    """What a rewrite can refer to by ``number``."""

    part: Expression
    number: int


Expression: TypeAlias = Characters | AnyByte | Assertion | Sequence | Choice | Repeat | Group
