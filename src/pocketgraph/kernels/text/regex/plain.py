"""Patterns in which a backtracking matcher never goes back far, for Python's own: nearly all that models hold.

Such a pattern is a choice of characters in a row; the last may be repeated. A place of the text where it does not match
costs at most the pattern's length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pocketgraph.budgets import allowance
from pocketgraph.kernels.text.regex import syntax_tree
from pocketgraph.kernels.text.regex.character_classes import utf8_sequences
from pocketgraph.kernels.text.regex.matcher import Spans
from pocketgraph.kernels.text.regex.nfa import may_be_empty

SPELLED = {
    "begin": rb"\A",
    "end": rb"\Z",
    "line begin": rb"(?m:^)",
    "line end": rb"(?=\n|\Z)",
    "border": rb"\b",
    "no border": rb"(?!\b)",
}
MOST_WAYS = 64  # of a choice


class PlainMatcher:
    """Matches a plain pattern by Python's matcher, byte by byte.

    Args:
        expression: the pattern, which is plain.
        groups: how many groups it has.
    """

    def __init__(self, expression: syntax_tree.Expression, groups: int) -> None:
        self.groups = groups
        self._pattern = re.compile(_spelled(expression), re.DOTALL)
        self._may_be_empty = may_be_empty(expression)

    def matches(self, text: bytes) -> bool:
        """Whether the pattern matches the whole of a text."""
        return self._pattern.fullmatch(text) is not None

    def search(self, text: bytes, begin: int) -> Spans | None:
        """As ``Matcher.search``."""
        found = self._pattern.search(text, begin)
        return None if found is None else found.regs

    def replaced(self, pieces: Sequence[bytes | int], text: bytes) -> bytes | None:
        """A text with each match replaced by texts and numbers of groups, at once; None where that is to be done match
        by match: some may be empty, of which RE2 counts others than Python, or there may be too much of it."""
        copies = sum([1 if isinstance(piece, int) else len(piece) for piece in pieces])
        if self._may_be_empty or len(text) * (copies + 1) > allowance():
            return None
        rewrite = [b"\\g<%d>" % p if isinstance(p, int) else p.replace(b"\\", b"\\\\") for p in pieces]
        return self._pattern.sub(b"".join(rewrite), text)


def is_plain(part: syntax_tree.Expression) -> bool:
    """Whether Python's matcher takes time linear in the text."""
    while isinstance(part, syntax_tree.Group):
        part = part.part
    if isinstance(part, syntax_tree.Choice):
        return len(part.parts) <= MOST_WAYS and all(map(_is_row, part.parts))
    return _is_row(part)


def _is_row(part: syntax_tree.Expression) -> bool:
    parts = part.parts if isinstance(part, syntax_tree.Sequence) else (part,)
    if parts and isinstance(parts[-1], syntax_tree.Repeat):
        last = parts[-1].part
        return all(map(_is_fixed, parts[:-1])) and isinstance(last, (syntax_tree.Characters, syntax_tree.AnyByte))
    return all(map(_is_fixed, parts))


def _is_fixed(part: syntax_tree.Expression) -> bool:
    if isinstance(part, syntax_tree.Group):
        return _is_fixed(part.part)
    if isinstance(part, syntax_tree.Sequence):
        return all(map(_is_fixed, part.parts))
    return isinstance(part, (syntax_tree.Characters, syntax_tree.AnyByte, syntax_tree.Assertion))


def _spelled(part: syntax_tree.Expression) -> bytes:
    """The pattern in Python's syntax, over bytes."""
    if isinstance(part, syntax_tree.Characters):
        sequences = utf8_sequences(part.ranges)
        single = b"".join(b"\\x%02x-\\x%02x" % row[0] for row in sequences if len(row) == 1)
        rows = [b"[%s]" % single] if single else []
        if not sequences:
            return b"(?!)"
        rows += [b"".join(b"[\\x%02x-\\x%02x]" % span for span in row) for row in sequences if len(row) > 1]
        return b"(?:%s)" % b"|".join(rows) if len(rows) > 1 or not single else rows[0]
    if isinstance(part, syntax_tree.AnyByte):
        return b"."
    if isinstance(part, syntax_tree.Assertion):
        return SPELLED[part.kind]
    if isinstance(part, syntax_tree.Sequence):
        return b"".join(map(_spelled, part.parts))
    if isinstance(part, syntax_tree.Choice):
        return b"(?:%s)" % b"|".join(map(_spelled, part.parts))
    if isinstance(part, syntax_tree.Group):
        return b"(%s)" % _spelled(part.part)
    most = b"" if part.most is None else b"%d" % part.most
    return b"%s{%d,%s}%s" % (_spelled(part.part), part.least, most, b"" if part.is_greedy else b"?")
