"""Columns of a text file as the keys and values of a lookup table."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.kernels.number_text import number_of

WHOLE_LINE, LINE_NUMBER = -2, -1
"""Column numbers with a meaning of their own."""
MOST_LINES = 1 << 26  # of a vocabulary's file


def table_columns(
    contents: bytes,
    dtypes: tuple[DType, DType],
    columns: tuple[int, int],
    *,
    size: int = -1,
    delimiter: bytes = b"\t",
    where: str = "",
) -> tuple[Array, Array]:
    """(keys, values) of a text file, one of each a line.

    Args:
        contents: the file.
        dtypes: of keys and values.
        columns: of keys and values; -2 is the whole line, -1 the line's number.
        size: how many lines are read; -1 for all.
        delimiter: what stands between columns.
        where: the file, for errors.

    Raises:
        RunError: there are too few lines, or a line lacks a column.
        ValueError: a column is no number where one is wanted.
    """
    lines = contents.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    lines = [line.rstrip(b"\r") for line in lines[: size if size >= 0 else MOST_LINES]]
    if len(lines) < size:
        raise RunError(f"the file has {len(lines)} lines where {size} are wanted", where=where)

    def column(index: int, dtype: DType) -> Array:
        if index == LINE_NUMBER:
            found: list[Any] = list(range(len(lines)))
        elif index == WHOLE_LINE:
            found = [_parsed(line, dtype) for line in lines]
        else:
            found = []
            for number, line in enumerate(lines):
                parts = line.split(delimiter)
                if index >= len(parts):
                    raise RunError(f"line {number + 1} has no column {index}", where=where)
                found.append(_parsed(parts[index], dtype))
        if dtype.numpy.kind == "O":
            return strings(found, (len(found),))
        return np.array(found, dtype=dtype.numpy)

    return column(columns[0], dtypes[0]), column(columns[1], dtypes[1])


def _parsed(text: bytes, dtype: DType) -> Any:
    return text if dtype.name == "string" else dtype.numpy.type(number_of(text, dtype.numpy))
