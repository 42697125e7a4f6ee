"""Texts read as numbers, as TensorFlow 2.21 reads them: no digits of other scripts, no ``_``, hexadecimal floats."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

BLANK = b" \t\n\v\f\r"
INTEGER = re.compile(rb"[+-]?[0-9]+")
DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
HEXADECIMAL = re.compile(rb"[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?", re.IGNORECASE)
NOT_FINITE = re.compile(rb"([+-]?(?:inf|infinity|nan))(\([a-z0-9_]*\))?", re.IGNORECASE)


def number_of(text: bytes, dtype: np.dtype[Any]) -> int | float:
    """The number that a text spells, with blanks around it.

    Args:
        text: it.
        dtype: an integer type, which must have the number, or a float type; what is too large for that is infinite.

    Raises:
        ValueError: it spells none.
    """
    bare = text.strip(BLANK)
    if dtype.kind in "iu":
        if INTEGER.fullmatch(bare) is None:
            raise ValueError("no integer")
        value, info = int(bare), np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise ValueError(f"no number of type {dtype}")
        return value
    if DECIMAL.fullmatch(bare) is not None:
        return float(bare)
    if HEXADECIMAL.fullmatch(bare) is not None:
        try:
            return float.fromhex(bare.decode())
        except OverflowError:
            return float("-inf" if bare.startswith(b"-") else "inf")
    word = NOT_FINITE.fullmatch(bare)
    if word is None:
        raise ValueError("no number")
    return float(word[1])
