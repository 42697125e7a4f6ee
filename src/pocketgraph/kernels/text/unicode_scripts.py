"""The script (Latin, Han, …) of code points."""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np

from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import kernel


@cache
def _spans() -> tuple[Array, Array]:
    """(first code points of the spans, their scripts' numbers); unicode_scripts.txt, made by a script under tests."""
    text = resources.files("pocketgraph.kernels.text").joinpath("unicode_scripts.txt").read_text("utf-8")
    pairs = [line.split() for line in text.splitlines()]
    return np.array([int(start, 16) for start, _ in pairs]), np.array([int(script) for _, script in pairs], np.int32)


@kernel("UnicodeScript")
def unicode_script(input: Array) -> Array:
    """The UScriptCode of each code point; -1 for what is none."""
    starts, scripts = _spans()
    places = np.searchsorted(starts, input, side="right") - 1
    return np.where((input >= 0) & (input < 0x110000), scripts[np.maximum(places, 0)], np.int32(-1)).astype(np.int32)
