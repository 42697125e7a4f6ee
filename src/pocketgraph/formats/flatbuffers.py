"""Reads FlatBuffers, each place looked at before it is read: what LiteRT models and their metadata are.

Source of the format: the FlatBuffers binary specification.
"""

from __future__ import annotations

import struct
from typing import Any

from pocketgraph.errors import FormatError
from pocketgraph.formats.wire import Buffer

SCALARS = {
    "i8": ("b", 1), "u8": ("B", 1), "bool": ("?", 1), "i32": ("i", 4), "u32": ("I", 4), "f32": ("f", 4),
    "i64": ("q", 8), "u64": ("Q", 8),
}  # fmt: skip
"""struct codes and sizes of scalars."""


class Table:
    """A table of a FlatBuffer; its fields are found by their slots when they are asked for.

    Raises:
        FormatError: a field that is asked for lies outside of the buffer.
    """

    __slots__ = ("_buffer", "_fields", "_position")

    def __init__(self, buffer: Buffer, position: int) -> None:
        self._buffer = buffer
        self._position = position
        vtable = position - _number(buffer, position, "i32")
        size = _unpack(buffer, "<H", vtable)
        self._fields = struct.unpack_from(f"<{max(size - 4, 0) // 2}H", _part(buffer, vtable + 4, max(size - 4, 0)))

    @staticmethod
    def root(buffer: Buffer) -> Table:
        """The root table of a buffer."""
        return Table(buffer, _number(buffer, 0, "u32"))

    def _place(self, slot: int) -> int:
        offset = self._fields[slot] if slot < len(self._fields) else 0
        return self._position + offset if offset else 0

    def _target(self, slot: int) -> int:
        place = self._place(slot)
        return place + _number(self._buffer, place, "u32") if place else 0

    def number(self, slot: int, kind: str, default: Any = 0) -> Any:
        """A scalar field."""
        place = self._place(slot)
        return _number(self._buffer, place, kind) if place else default

    def text(self, slot: int) -> str:
        """A string field; "" where it is left out."""
        data = self.data(slot)
        return bytes(data).decode("utf-8", "replace") if data is not None else ""

    def data(self, slot: int) -> Buffer | None:
        """The bytes of a string or of a vector of bytes, not copied where the buffer is a view; None where left out."""
        start = self._target(slot)
        return _part(self._buffer, start + 4, _number(self._buffer, start, "u32")) if start else None

    def numbers(self, slot: int, kind: str) -> tuple[Any, ...]:
        """A vector of scalars; empty where it is left out."""
        start = self._target(slot)
        if not start:
            return ()
        code, size = SCALARS[kind]
        count = _number(self._buffer, start, "u32")
        return struct.unpack(f"<{count}{code}", _part(self._buffer, start + 4, count * size))

    def table(self, slot: int) -> Table | None:
        """A table field; None where it is left out."""
        start = self._target(slot)
        return Table(self._buffer, start) if start else None

    def tables(self, slot: int) -> list[Table]:
        """A vector of tables; empty where it is left out."""
        start = self._target(slot)
        if not start:
            return []
        count = _number(self._buffer, start, "u32")
        _part(self._buffer, start + 4, 4 * count)
        places = range(start + 4, start + 4 + 4 * count, 4)
        return [Table(self._buffer, place + _number(self._buffer, place, "u32")) for place in places]


def _part(buffer: Buffer, start: int, size: int) -> Any:
    if start < 0 or size < 0 or start + size > len(buffer):
        raise FormatError(f"the file is damaged: {size} bytes at byte {start} lie outside of it")
    return buffer[start : start + size]


def _unpack(buffer: Buffer, form: str, position: int) -> Any:
    return struct.unpack(form, _part(buffer, position, struct.calcsize(form)))[0]


def _number(buffer: Buffer, position: int, kind: str) -> Any:
    code, _ = SCALARS[kind]
    return _unpack(buffer, f"<{code}", position)
