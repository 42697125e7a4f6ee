"""The Print ops: write values to stderr or stdout, in the form that the original's log files have.

What a terminal would act on is escaped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError, printable
from pocketgraph.kernels.registry import Context, Value, kernel

ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
"""How bytes that are not printed as they are look; others are octal."""


@kernel("Print")
def print_(
    input: Value, *data: Value, context: Context, message: str = "", first_n: int = -1, summarize: int = 3
) -> Value:
    """Hands ``input`` on.

    Writes one line ``MESSAGE[VALUES][VALUES]…`` with up to ``summarize`` elements of each tensor (-1: all), the first
    ``first_n`` times that the node runs (-1: always).
    """
    if first_n >= 0:
        printed = context.state.setdefault("printed lines", {})
        printed[context.instance] = printed.get(context.instance, 0) + 1
        if printed[context.instance] > first_n:
            return input
    line = message + "".join(f"[{summary(values, summarize)}]" for values in data)
    sys.stderr.write(printable(line) + "\n")
    sys.stderr.flush()
    return input


@kernel("PrintV2")
def print_v2(input: Any, *, output_stream: str = "stderr", end: str | bytes = "\n") -> tuple[()]:
    """Writes a text, which StringFormat has made, and ``end`` to stderr or stdout.

    ``output_stream`` may also be a level of TensorFlow's log, ``log(info)``, ``log(warning)`` or ``log(error)``, whose
    lines begin with the level's letter here.

    Raises:
        RunError: the text is no scalar, or it shall go into a file, which no graph may write by printing.
    """
    array = np.asarray(input)
    if array.ndim:
        raise RunError(f"Input is expected to be scalar, but got {list(array.shape)}")
    text = array.item().decode(errors="replace") + (end.decode(errors="replace") if isinstance(end, bytes) else end)
    level = {"log(info)": "I ", "log(warning)": "W ", "log(error)": "E "}.get(output_stream)
    if level is None and output_stream not in ("stderr", "stdout"):
        raise RunError(
            f"nothing is printed to '{output_stream}'",
            hint="stderr, stdout, log(info), log(warning) and log(error) are",
        )
    stream = sys.stdout if output_stream == "stdout" else sys.stderr
    stream.write(f"{level or ''}{printable(text)}")
    stream.flush()
    return ()


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

    return shown(array if array.ndim else array[()], 0)


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
