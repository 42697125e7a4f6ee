"""Writes FlexBuffers: the form of a custom operator's options, a map from attribute names to values.

Source of the format: the FlatBuffers project's flexbuffers.md. Everything is eight bytes wide, so that nothing has
to be measured first.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

FlexValue: TypeAlias = "bool | int | float | str | bytes | Sequence[int] | Sequence[float] | Sequence[str]"
INT, FLOAT, STRING, MAP, VECTOR, INTS, FLOATS, KEYS, BOOL = 1, 3, 5, 9, 10, 11, 13, 14, 26
WIDTH, WIDTH_BITS = 8, 3


def flex_map(values: Mapping[str, FlexValue]) -> bytes:
    """A map as the bytes of a FlexBuffer.

    Args:
        values: numbers, truths, texts, and lists of numbers or of texts, by name.
    """
    out = bytearray()
    keys = []
    for name in sorted(values):
        keys.append(len(out))
        out += name.encode() + b"\0"
    placed = [_placed(out, values[name]) for name in sorted(values)]
    key_vector = _begin(out, len(keys))
    for position in keys:
        out += struct.pack("<Q", len(out) - position)
    out += struct.pack("<Q", len(out) - key_vector) + struct.pack("<QQ", WIDTH, len(keys))
    start = len(out)
    for _, content, is_offset in placed:
        out += struct.pack("<Q", len(out) - content) if is_offset else struct.pack("<q", content)
    out += bytes(_packed(kind) for kind, _, _ in placed)
    _align(out)
    out += struct.pack("<Q", len(out) - start) + bytes((_packed(MAP), WIDTH))
    return bytes(out)


def _packed(kind: int) -> int:
    return kind << 2 | WIDTH_BITS


def _align(out: bytearray) -> None:
    out += bytes(-len(out) % WIDTH)


def _begin(out: bytearray, count: int) -> int:
    """Writes how many there are of what comes next; gives where that begins."""
    _align(out)
    out += struct.pack("<Q", count)
    return len(out)


def _placed(out: bytearray, value: FlexValue) -> tuple[int, int, bool]:
    """Writes what lies elsewhere of a value; gives its type, its bits or where it lies, and which of the two."""
    if isinstance(value, bool):
        return BOOL, int(value), False
    if isinstance(value, int):
        return INT, value, False
    if isinstance(value, float):
        return FLOAT, struct.unpack("<q", struct.pack("<d", value))[0], False
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        start = _begin(out, len(data))
        out += data + b"\0"
        return STRING, start, True
    if all(isinstance(item, int) for item in value):
        return INTS, _numbers(out, f"<{len(value)}q", value), True
    if all(isinstance(item, int | float) for item in value):
        return FLOATS, _numbers(out, f"<{len(value)}d", value), True
    items = [_placed(out, item) for item in value]
    start = _begin(out, len(items))
    for _, content, _ in items:
        out += struct.pack("<Q", len(out) - content)
    out += bytes(_packed(kind) for kind, _, _ in items)
    return VECTOR, start, True


def _numbers(out: bytearray, form: str, values: Sequence[int | float | str]) -> int:
    start = _begin(out, len(values))
    out += struct.pack(form, *values)
    return start
