"""Values as text, in the form that the original prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
"""How bytes that are not printed as they are look; others are octal."""


def summary(values: Any, most: int) -> str:
    """The first ``most`` elements (-1: all), with brackets round the rows of tensors of more than one dimension."""
    array = np.asarray(values)
    limit = array.size if most < 0 else min(most, array.size)
    elements = iter([one(v) for v in array.reshape(-1)[:limit]])
    if array.ndim < 2:
        text = " ".join(elements)
    else:
        text = "".join(_rows(array.shape, elements, [limit]))
    return text + ("..." if array.size > limit else "")


def _rows(shape: Sequence[int], elements: Iterator[str], left: list[int]) -> Iterator[str]:
    """The text of what ``elements`` has left for a tensor of this shape, which is not the outermost."""
    for _ in range(shape[0]):
        if not left[0]:
            return
        yield "["
        if len(shape) > 2:
            yield from _rows(shape[1:], elements, left)
        else:
            count = min(shape[1], left[0])
            left[0] -= count
            yield " ".join(next(elements) for _ in range(count)) + ("..." if count < shape[1] else "")
        yield "]"


def nested(values: Any, ends: int) -> str:
    """A tensor in nested brackets, of each axis the first and last ``ends`` (-1: all); texts are in quotes."""
    array = np.asarray(values)
    limit = array.size if ends < 0 else min(ends, array.size)

    def shown(part: Any, depth: int) -> str:
        if depth == array.ndim:
            return f'"{escaped(part, True)}"' if isinstance(part, bytes) else one(part)
        count = len(part)
        rows = [shown(part[n], depth + 1) for n in range(min(limit, count))]
        rows += ["..."] * (count > 2 * limit)
        rows += [shown(part[n], depth + 1) for n in range(max(limit, count - limit), count)]
        inner = array.ndim - 1 - depth
        between = "\n" * inner + " " * (depth + 1) if inner else " "
        return "[" + ("" if limit or not count else between) + between.join(rows) + "]"

    return shown(array, 0) if array.ndim else shown(array[()], 0) if limit else "..."


def escaped(value: bytes, beyond_ascii: bool = False) -> str:
    """A text with what is not printable as escapes; bytes from 128 on may stay, as the surrogates of their values."""
    return "".join(
        ESCAPES.get(b) or (bytes([b]).decode(errors="surrogateescape") if 32 <= b < 127 or (beyond_ascii and b > 127)
                           else f"\\{b:03o}") for b in value
    )  # fmt: skip


def one(value: Any) -> str:
    """One element: numbers as short as they can be read back, strings escaped."""
    if isinstance(value, bytes):
        return escaped(value)
    kind = np.asarray(value).dtype
    if kind.kind == "b":
        return str(int(value))
    if kind.kind in "iu":
        return str(value)
    if kind.kind == "c" or kind.kind not in "fV":
        return "?"
    number = float(value)
    short, long, wide = (15, 17, np.float64) if kind == np.float64 else (6, 9, np.float32)
    text = f"{number:.{short}g}"
    return text if wide(text) == wide(number) or number != number else f"{number:.{long}g}"
