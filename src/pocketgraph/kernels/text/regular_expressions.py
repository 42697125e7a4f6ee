"""Texts compared with regular expressions, and what matches replaced: RE2's syntax and meaning, in linear time.

Patterns that cannot make it go back far are given to Python's matcher, over bytes; all others to Google's library,
which the extra ``re2`` brings, or to our own. All three give the same.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np

from pocketgraph.budgets import check_memory, check_time, timed
from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.text.regex.matcher import Matcher, Spans
from pocketgraph.kernels.text.regex.nfa import Nfa
from pocketgraph.kernels.text.regex.plain import PlainMatcher, is_plain
from pocketgraph.kernels.text.regex.syntax import PatternError, parse
from pocketgraph.kernels.text.strings import mapped, scalar_string

HINT = "RE2's syntax has no backreferences and does not look ahead or behind: write the pattern without"
BEYOND = ("(?=", "(?!", "(?<", *(f"\\{digit}" for digit in range(1, 10)))
"""How RE2 names what of Perl's syntax it lacks."""
MOST_GROUPS = 17  # of those that a rewrite can refer to
PLAIN = "plain_patterns"
"""The pass that gives Python's matcher the patterns that cannot make it go back far."""


class CompiledPattern(Protocol):
    """A pattern, compiled.

    Attributes:
        groups: how many groups it has.
    """

    groups: int

    def matches(self, text: bytes) -> bool:
        """Whether it matches the whole of a text."""

    def search(self, text: bytes, begin: int) -> Spans | None:
        """(begin, end) of the first match at ``begin`` or behind it, and of its groups."""


class LibraryPattern:
    """A pattern of Google's library.

    Args:
        library: the module ``re2``.
    """

    def __init__(self, pattern: bytes, library: Any) -> None:
        options = library.Options()
        options.log_errors = False
        try:
            self._pattern = library.compile(pattern, options)
        except library.error as error:
            said = error.args[0]
            raise PatternError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error
        self.groups: int = self._pattern.groups

    def matches(self, text: bytes) -> bool:
        return self._pattern.fullmatch(text) is not None

    def search(self, text: bytes, begin: int) -> Spans | None:
        found = self._pattern.search(text, begin)
        return None if found is None else tuple([found.span(group) for group in range(self.groups + 1)])


@lru_cache(maxsize=256)
def pattern_of(pattern: bytes, *, may_be_plain: bool = True) -> CompiledPattern:
    """The pattern, compiled; for Python's matcher only where it ``may_be_plain``.

    Raises:
        RunError: RE2 does not take it.
    """
    try:
        expression, groups = parse(pattern)
        if may_be_plain and is_plain(expression):
            return PlainMatcher(expression, groups)
        try:
            import re2
        except ImportError:
            return Matcher(Nfa(expression, groups))
        return LibraryPattern(pattern, re2)
    except PatternError as error:
        raise RunError(
            f"Invalid pattern: {pattern.decode(errors='replace')}, error: {error}",
            hint=HINT if any(f": {sign}" in str(error) for sign in BEYOND) else "",
        ) from error


def _replaced(input: Array, pattern: bytes, rewrite: bytes, every: bool, **how: bool) -> Array:
    compiled = pattern_of(pattern, **how)
    pieces, is_whole = _pieces(rewrite)
    highest = max((piece for piece in pieces if isinstance(piece, int)), default=0)
    if highest > compiled.groups or highest >= MOST_GROUPS or not (is_whole or every):
        return input
    if every:
        return mapped(lambda text: replace_all(compiled, pieces, text), input)
    return mapped(lambda text: _replace_first(compiled, pieces, text), input)


def _pieces(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    """A rewrite as texts and numbers of groups, up to where it is wrong; and whether it is right."""
    pieces: list[bytes | int] = []
    at = 0
    while at < len(rewrite):
        end = rewrite.find(b"\\", at)
        if end < 0:
            end = len(rewrite)
        if end > at:
            pieces.append(rewrite[at:end])
        if end == len(rewrite):
            break
        sign = rewrite[end + 1 : end + 2]
        if sign.isdigit():
            pieces.append(int(sign))
        elif sign == b"\\":
            pieces.append(sign)
        else:
            return pieces, False
        at = end + 2
    return pieces, True


def _expanded(pieces: list[bytes | int], text: bytes, spans: Spans) -> bytes:
    return b"".join([
        piece if isinstance(piece, bytes) else text[spans[piece][0] : spans[piece][1]] if spans[piece][0] >= 0 else b""
        for piece in pieces
    ])  # fmt: skip


def _replace_first(pattern: CompiledPattern, pieces: list[bytes | int], text: bytes) -> bytes:
    spans = pattern.search(text, 0)
    if spans is None:
        return text
    begin, end = spans[0]
    return text[:begin] + _expanded(pieces, text, spans) + text[end:]


def replace_all(pattern: CompiledPattern, pieces: list[bytes | int], text: bytes) -> bytes:
    """A text with each match replaced; an empty match right behind another one counts for none, as in RE2.

    Raises:
        RunError: the result takes more memory than may be taken.
    """
    quick = pattern.replaced(pieces, text) if isinstance(pattern, PlainMatcher) else None
    if quick is not None:
        return quick
    found: list[bytes] = []
    size = 0
    at, last = 0, -1
    while at <= len(text):
        spans = pattern.search(text, at)
        if spans is None:
            break
        check_time()
        begin, end = spans[0]
        found.append(text[at:begin])
        if begin == end == last:
            width = _character_width(text, begin)
            found.append(text[begin : begin + width])
            at = begin + width
            continue
        found.append(_expanded(pieces, text, spans))
        size += len(found[-1])
        check_memory(size, "a text with all matches replaced")
        at = last = end
    return b"".join([*found, text[at:]]) if found else text


def _character_width(text: bytes, begin: int) -> int:
    """Bytes of the character that begins here; 1 where none does."""
    for width in (1, 2, 3, 4):
        try:
            text[begin : begin + width].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            continue
        return width
    return 1


@kernel("RegexReplace")
def regex_replace(input: Array, pattern: Array, rewrite: Array, *, replace_global: bool = True, **how: bool) -> Array:
    return _replaced(input, scalar_string(pattern), scalar_string(rewrite), replace_global, **how)


@kernel("StaticRegexReplace")
def static_regex_replace(
    input: Array, *, pattern: str, rewrite: str, replace_global: bool = True, **how: bool
) -> Array:
    return _replaced(input, _as_bytes(pattern), _as_bytes(rewrite), replace_global, **how)


@kernel("RegexFullMatch")
def regex_full_match(input: Array, pattern: Array, **how: bool) -> Array:
    return _matches(input, scalar_string(pattern), **how)


@kernel("StaticRegexFullMatch")
def static_regex_full_match(input: Array, *, pattern: str, **how: bool) -> Array:
    return _matches(input, _as_bytes(pattern), **how)


for _kernel in (regex_replace, static_regex_replace, regex_full_match, static_regex_full_match):
    _kernel.without = {PLAIN: partial(_kernel, may_be_plain=False)}  # type: ignore[union-attr]


def _as_bytes(text: str | bytes) -> bytes:
    """A string attribute; one that is no UTF-8 comes as bytes."""
    return text if isinstance(text, bytes) else text.encode()


def _matches(input: Array, pattern: bytes, **how: bool) -> Array:
    compiled = pattern_of(pattern, **how)
    found = [compiled.matches(item) for item in timed(input.ravel().tolist())]
    return np.asarray(np.array(found, dtype=np.bool_).reshape(input.shape))
