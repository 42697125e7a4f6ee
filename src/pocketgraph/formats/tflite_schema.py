"""The TensorFlow Lite schema (version 3) as numbers, names and fields: ``tflite_schema.txt``, a line an entry."""

from __future__ import annotations

import os
from functools import cache

PLACE = os.path.join(os.path.dirname(__file__), "tflite_schema.txt")


@cache
def entries(part: str) -> tuple[list[str], ...]:
    """The words of each entry of a part: ``operators``, ``options``, ``options 2`` or ``tables``."""
    lines: str = __loader__.get_data(PLACE).decode()  # type: ignore[name-defined]
    lines = lines.partition(f"[{part}]\n")[2].partition("\n[")[0]
    return tuple([line.split() for line in lines.splitlines() if not line.startswith("#")])
