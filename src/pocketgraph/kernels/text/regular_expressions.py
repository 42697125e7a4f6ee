"""Texts compared with regular expressions, and what matches replaced: RE2's syntax and meaning, in linear time.

Patterns that cannot make it go back far are given to Python's matcher, over bytes, which replaces all matches at once;
all others to Google's library. Both give the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from pocketgraph.budgets import allowance, check_memory, check_time, timed
from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.text.plain_patterns import plain_pattern
from pocketgraph.kernels.text.strings import mapped, scalar_string

HINT = "RE2's syntax has no backreferences and does not look ahead or behind: write the pattern without"
BEYOND = ("(?=", "(?!", "(?<", *(f"\\{digit}" for digit in range(1, 10)))
"""How RE2 names what of Perl's syntax it lacks."""
MOST_GROUPS = 17  # of those that a rewrite can refer to


@lru_cache(maxsize=256)
def pattern_of(pattern: bytes) -> Any:
    """The pattern, compiled by ``re`` or by ``re2``, which have the same methods.

    Raises:
        RunError: RE2 does not take it.
    """
    return plain_pattern(pattern) or library_pattern(pattern)


def library_pattern(pattern: bytes) -> Any:
    """The pattern, compiled by ``re2``.

    Raises:
        RunError: RE2 does not take it.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0]
        said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise RunError(
            f"Invalid pattern: {pattern.decode(errors='replace')}, error: {said}",
            hint=HINT if any(f": {sign}" in said for sign in BEYOND) else "",
        ) from error


def _replaced(input: Array, pattern: bytes, rewrite: bytes, every: bool) -> Array:
    compiled = pattern_of(pattern)
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


def _expanded(pieces: list[bytes | int], found: Any) -> bytes:
    return b"".join([piece if isinstance(piece, bytes) else found.group(piece) or b"" for piece in pieces])


def _replace_first(pattern: Any, pieces: list[bytes | int], text: bytes) -> bytes:
    found = pattern.search(text)
    return text if found is None else text[: found.start()] + _expanded(pieces, found) + text[found.end() :]


def replace_all(pattern: Any, pieces: list[bytes | int], text: bytes) -> bytes:
    """A text with each match replaced; an empty match right behind another one counts for none, as in RE2.

    Raises:
        RunError: the result takes more memory than may be taken.
    """
    copies = sum([1 if isinstance(piece, int) else len(piece) for piece in pieces])
    if isinstance(pattern, re.Pattern) and len(text) * (copies + 1) <= allowance():
        rewrite = [b"\\g<%d>" % p if isinstance(p, int) else p.replace(b"\\", b"\\\\") for p in pieces]
        return pattern.sub(b"".join(rewrite), text)
    kept: list[bytes] = []
    size = 0
    at, last = 0, -1
    while at <= len(text):
        found = pattern.search(text, at)
        if found is None:
            break
        check_time()
        begin, end = found.span()
        kept.append(text[at:begin])
        if begin == end == last:
            width = _character_width(text, begin)
            kept.append(text[begin : begin + width])
            at = begin + width
            continue
        kept.append(_expanded(pieces, found))
        size += len(kept[-1])
        check_memory(size, "a text with all matches replaced")
        at = last = end
    return b"".join([*kept, text[at:]]) if kept else text


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
def regex_replace(input: Array, pattern: Array, rewrite: Array, *, replace_global: bool = True) -> Array:
    return _replaced(input, scalar_string(pattern), scalar_string(rewrite), replace_global)


@kernel("StaticRegexReplace")
def static_regex_replace(input: Array, *, pattern: str, rewrite: str, replace_global: bool = True) -> Array:
    return _replaced(input, _as_bytes(pattern), _as_bytes(rewrite), replace_global)


@kernel("RegexFullMatch")
def regex_full_match(input: Array, pattern: Array) -> Array:
    return _matches(input, scalar_string(pattern))


@kernel("StaticRegexFullMatch")
def static_regex_full_match(input: Array, *, pattern: str) -> Array:
    return _matches(input, _as_bytes(pattern))


def _as_bytes(text: str | bytes) -> bytes:
    """A string attribute; one that is no UTF-8 comes as bytes."""
    return text if isinstance(text, bytes) else text.encode()


def _matches(input: Array, pattern: bytes) -> Array:
    compiled = pattern_of(pattern)
    found = [compiled.fullmatch(item) is not None for item in timed(input.ravel().tolist())]
    return np.asarray(np.array(found, dtype=np.bool_).reshape(input.shape))
