"""Sets of code points: Perl's, POSIX's and Unicode's classes, letters of either case, and their bytes in UTF-8."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import kernel
from pocketgraph.package_data import text_beside


@cache
def _spans() -> tuple[Array, Array]:
    """(first code points of the spans, their scripts' numbers); unicode_scripts.txt, made by a script under tests."""
    text = text_beside(__file__, "unicode_scripts.txt")
    pairs = [line.split() for line in text.splitlines()]
    return np.array([int(start, 16) for start, _ in pairs]), np.array([int(script) for _, script in pairs], np.int32)


SCRIPTS = [
    "Common", "Inherited", "Arabic", "Armenian", "Bengali", "Bopomofo", "Cherokee", "Coptic", "Cyrillic", "Deseret",
    "Devanagari", "Ethiopic", "Georgian", "Gothic", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hebrew",
    "Hiragana", "Kannada", "Katakana", "Khmer", "Lao", "Latin", "Malayalam", "Mongolian", "Myanmar", "Ogham",
    "Old_Italic", "Oriya", "Runic", "Sinhala", "Syriac", "Tamil", "Telugu", "Thaana", "Thai", "Tibetan",
    "Canadian_Aboriginal", "Yi",
]  # fmt: skip
"""The first scripts, in the order of their numbers."""


def spans_of_script(name: str) -> list[tuple[int, int]] | None:
    """The first and last code points of a script's spans; None for a name that is none, or not in ``SCRIPTS``."""
    if name not in SCRIPTS:
        return None
    starts, scripts = _spans()
    ends = [*(starts[1:] - 1).tolist(), 0x10FFFF]
    number = SCRIPTS.index(name)
    return [(a, b) for a, b, script in zip(starts.tolist(), ends, scripts.tolist(), strict=True) if script == number]


@kernel("UnicodeScript")
def unicode_script(input: Array) -> Array:
    """The UScriptCode of each code point; -1 for what is none."""
    starts, scripts = _spans()
    places = np.searchsorted(starts, input, side="right") - 1
    return np.where((input >= 0) & (input < 0x110000), scripts[np.maximum(places, 0)], np.int32(-1)).astype(np.int32)


Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points, or bytes: pairs of the first and the last, in order, with gaps between."""

LAST = 0x10FFFF
DIGITS: Ranges = ((48, 57),)
SPACES: Ranges = ((9, 10), (12, 13), (32, 32))
WORD_CHARACTERS: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
PERL = {"d": DIGITS, "s": SPACES, "w": WORD_CHARACTERS}
POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": WORD_CHARACTERS,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
SIZES = ((0x00, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, LAST))
"""The code points that UTF-8 writes with one, two, three and four bytes."""


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All others."""
    starts = [0, *(end + 1 for _, end in ranges)]
    ends = [*(start - 1 for start, _ in ranges), LAST]
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start <= end)


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    """The code points of each of Unicode's general categories, of one letter and of two."""
    found: dict[str, list[tuple[int, int]]] = {}
    start, name = 0, unicodedata.category("\0")
    for point in range(1, LAST + 2):
        other = unicodedata.category(chr(point)) if point <= LAST else ""
        if other != name:
            found.setdefault(name, []).append((start, point - 1))
            if name != "Cn":
                found.setdefault(name[0], []).append((start, point - 1))
            start, name = point, other
    found.pop("Cn")
    return found


@lru_cache(maxsize=64)
def unicode_class(name: str) -> Ranges | None:
    """The code points of a general category (``Lu``, ``N``) or script (``Greek``); None when there is no such name."""
    if name == "Any":
        return ((0, LAST),)
    found = _categories().get(name) or spans_of_script(name)
    return None if found is None else union(found)


@cache
def _other_cases() -> dict[int, tuple[int, ...]]:
    """For each code point that has other cases, these (simple case folding)."""
    same: dict[int, set[int]] = {}
    for point in range(0x1E944):
        letter = chr(point)
        folded = letter.casefold()
        if len(folded) > 1:
            folded = letter.lower()
        if folded != letter and len(folded) == 1:
            same.setdefault(ord(folded), {ord(folded)}).add(point)
    return {point: tuple(group - {point}) for group in same.values() for point in group}


def folded(ranges: Ranges) -> Ranges:
    """The ranges with the other cases of their letters."""
    others = _other_cases()
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return union([*ranges, *((other, other) for other in others.get(ranges[0][0], ()))])
    starts = [first for first, _ in ranges]
    more = []
    for point, cases in others.items():
        place = bisect_right(starts, point) - 1
        if place >= 0 and point <= ranges[place][1]:
            more += [(other, other) for other in cases]
    return union([*ranges, *more])


@lru_cache(maxsize=1024)
def utf8_sequences(ranges: Ranges) -> tuple[Ranges, ...]:
    """How UTF-8 writes code points: sequences of one to four ranges of bytes each. Those of two sequences at one place
    behind a common beginning are the same or have no byte in common."""
    found: list[Ranges] = []
    for first, last in ranges:
        for size, (low, high) in enumerate(SIZES):
            if max(first, low) <= min(last, high):
                _split(max(first, low), min(last, high), size, found)
    return tuple(found)


def _split(first: int, last: int, size: int, found: list[Ranges]) -> None:
    """Adds sequences of 1 + ``size`` bytes: a range is split until only its last bytes run through all values."""
    for place in range(1, size + 1):
        mask = (1 << 6 * place) - 1
        if first & ~mask == last & ~mask:
            break
        if first & mask:
            _split(first, first | mask, size, found)
            _split((first | mask) + 1, last, size, found)
            return
        if last & mask != mask:
            _split(first, (last & ~mask) - 1, size, found)
            _split(last & ~mask, last, size, found)
            return
    found.append(tuple(zip(_encoded(first), _encoded(last), strict=True)))


def _encoded(point: int) -> Sequence[int]:
    return chr(point).encode("utf-8", "surrogatepass")
