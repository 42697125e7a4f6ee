"""The TensorFlow Lite schema (version 3) as numbers, names and fields: ``tflite_schema.txt``, a line an entry."""

from __future__ import annotations

from functools import cache

from pocketgraph.package_data import section_beside


@cache
def entries(part: str) -> tuple[list[str], ...]:
    """The words of each entry of a part: ``operators``, ``options``, ``options 2`` or ``tables``."""
    return tuple(map(str.split, section_beside(__file__, "tflite_schema.txt", part)))
