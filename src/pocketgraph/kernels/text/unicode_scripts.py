"""The script (Latin, Han, …) of code points."""

from __future__ import annotations

from functools import cache

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
