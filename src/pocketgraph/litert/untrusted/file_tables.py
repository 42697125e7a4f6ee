"""Tables of the TensorFlow Lite schema (version 3) as a reader meets them: the kind of every field, by slot.

They are in ``formats/tflite_schema.txt``.
"""

from __future__ import annotations

from pocketgraph.formats.tflite_schema import entries


def _fields(words: list[str]) -> dict[int, str]:
    """``slot:kind`` words by slot, maybe with a name behind; ``from-to:kind`` stands for several."""
    found: dict[int, str] = {}
    for word in words:
        slots, kind = word.split(":")[:2]
        first, _, last = slots.partition("-")
        found.update(dict.fromkeys(range(int(first), int(last or first) + 1), kind))
    return found


TABLES = {name: _fields(fields) for name, *fields in entries("tables")}

OPTIONS = {int(number): _fields(fields) for number, _, *fields in entries("options")}
"""Option tables by their number in the BuiltinOptions union; those that are not named have no fields that are read."""

OPTIONS_2 = {int(number): _fields(fields) for number, _, *fields in entries("options 2")}
"""The same for the union BuiltinOptions2, of operators that came from StableHLO."""

POSITIVE: dict[int, tuple[int, ...]] = {
    1: (1, 2, 4, 5), 2: (1, 2, 5, 6), 5: (1, 2, 3, 4), 19: (0,), 49: (1, 2), 94: (0,), 106: (1, 2, 3, 5, 6, 7),
}  # fmt: skip
"""Fields of option tables that native code divides by or counts windows with: strides, dilations, windows, blocks.
Dilations are 1 where they are left out."""

DILATIONS: dict[int, tuple[int, ...]] = {1: (4, 5), 2: (5, 6), 106: (5, 6, 7)}

SUBGRAPHS: dict[int, tuple[int, ...]] = {92: (0, 1), 93: (0, 1), 103: (0,)}
"""Fields of option tables that are the numbers of subgraphs."""

SUBGRAPHS_2: dict[int, tuple[int, ...]] = {6: (1,), 7: (6,), 13: (5,), 14: (2,), 15: (0, 1), 21: (1,)}
CASE = 23
"""The table of BuiltinOptions2 whose first field lists subgraphs."""

EXPECTED: dict[int, int] = {
    1: 5, 3: 1, 4: 2, 5: 94, 17: 5, 12: 5, 26: 19, 67: 49, 13: 13, 49: 35, 112: 87,
    118: 92, 119: 93, 129: 103, 132: 106, 141: 106,
}  # fmt: skip
"""By operator: the option table without which its kernel divides by 0 or looks where nothing is."""

BITS = {
    0: 32, 1: 16, 2: 32, 3: 8, 4: 64, 6: 8, 7: 16, 8: 64, 9: 8, 10: 64, 11: 128, 12: 64, 15: 32, 16: 16, 17: 4, 18: 16,
    19: 2, 20: 4, 21: 8, 22: 8,
}  # fmt: skip
"""Bits of an element by TensorType number, of those that have a size."""

STRING, RESOURCE, VARIANT = 5, 13, 14
