"""Reads FlatBuffers that may be damaged: every place is looked at before it is read, and nothing is read twice over.

Source of the format: the FlatBuffers binary specification. flatbuffer.py writes them.
"""

from __future__ import annotations

import struct
from typing import Any

from pocketgraph.litert.untrusted.file_tables import KINDS, TABLES

SMALLEST = 1 << 16  # elements of vectors that are looked at in any file; beyond, four for each byte


class DamagedError(Exception):
    """What is wrong with a file; never leaves this package."""


class Table:
    """A table whose bounds are verified: the place of each field that is present."""

    __slots__ = ("at", "offsets", "reader")

    def __init__(self, reader: Reader, at: int, offsets: tuple[int, ...]) -> None:
        self.reader = reader
        self.at = at
        self.offsets = offsets

    def place(self, slot: int) -> int:
        """Where a field is, 0 when it is left out."""
        offset = self.offsets[slot] if slot < len(self.offsets) else 0
        return self.at + offset if offset else 0

    def number(self, slot: int, kind: str, default: int = 0) -> int:
        """A scalar field."""
        place = self.place(slot)
        return int(self.reader.scalar(place, kind)) if place else default

    def numbers(self, slot: int, kind: str = "i32") -> tuple[int, ...]:
        """A vector of scalars; empty when it is left out."""
        place = self.place(slot)
        return self.reader.scalars(place, kind) if place else ()

    def tables(self, slot: int, kind: str) -> list[Table]:
        """A vector of tables; empty when it is left out."""
        place = self.place(slot)
        return self.reader.tables(place, kind) if place else []


class Reader:
    """The bytes of a FlatBuffer, each place looked at before it is read."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.end = len(data)
        self.left = SMALLEST + 4 * self.end
        self._vtables: dict[tuple[int, str], tuple[int, tuple[int, ...]]] = {}

    def scalar(self, place: int, kind: str) -> Any:
        code, size = KINDS[kind]
        if place < 0 or place + size > self.end:
            raise DamagedError(f"a number at byte {place} lies outside of the file")
        return struct.unpack_from(f"<{code}", self.data, place)[0]

    def target(self, place: int) -> int:
        """Where an offset points; always forwards."""
        offset = self.scalar(place, "u32")
        if not offset:
            raise DamagedError(f"an offset of 0 at byte {place}")
        return place + int(offset)

    def spend(self, count: int) -> None:
        """Counts what is looked at: places that are used again and again may not make a small file endless."""
        self.left -= count
        if self.left < 0:
            raise DamagedError("its vectors overlap more than those of any model")

    def vector(self, place: int, size: int) -> tuple[int, int]:
        """(where the elements of a vector begin, how many there are), each of ``size`` bytes."""
        start = self.target(place)
        count = int(self.scalar(start, "u32"))
        if start + 4 + count * size > self.end:
            raise DamagedError(f"a vector of {count} elements at byte {start} ends outside of the file")
        return start + 4, count

    def scalars(self, place: int, kind: str) -> tuple[int, ...]:
        code, size = KINDS[kind]
        start, count = self.vector(place, size)
        self.spend(count)
        return struct.unpack_from(f"<{count}{code}", self.data, start)

    def tables(self, place: int, kind: str) -> list[Table]:
        start, count = self.vector(place, 4)
        self.spend(count)
        return [self.table(self.target(start + 4 * index), kind) for index in range(count)]

    def table(self, at: int, kind: str = "") -> Table:
        """A table and all that it points to but tables; without a kind only the fields' places."""
        return self.fields(at, TABLES[kind] if kind else {}, kind)

    def fields(self, at: int, kinds: dict[int, str], name: str) -> Table:
        """A table with fields of these kinds; ``name`` is the same for the same kinds."""
        vtable = at - int(self.scalar(at, "i32"))
        known = self._vtables.get((vtable, name))
        size, offsets = self._vtable(vtable, kinds, name) if known is None else known
        if at + size > self.end:
            raise DamagedError(f"a table at byte {at} ends outside of the file")
        table = Table(self, at, offsets)
        for slot, kind in kinds.items():
            if kind in KINDS or not table.place(slot):
                continue
            if kind == "string":
                start, count = self.vector(table.place(slot), 1)
                if start + count >= self.end or self.data[start + count]:
                    raise DamagedError(f"a name at byte {start} does not end")
            elif kind[0] == "[" and kind[1:-1] in KINDS:
                self.vector(table.place(slot), KINDS[kind[1:-1]][1])
        return table

    def _vtable(self, vtable: int, kinds: dict[int, str], name: str) -> tuple[int, tuple[int, ...]]:
        """(bytes of the table, the offset of each slot) of a layout; it is the same for many tables."""
        if vtable < 0 or vtable + 4 > self.end:
            raise DamagedError(f"a table's layout at byte {vtable} lies outside of the file")
        length, size = struct.unpack_from("<HH", self.data, vtable)
        if length < 4 or length % 2 or vtable + length > self.end or size < 4:
            raise DamagedError(f"a table's layout at byte {vtable} is impossible")
        offsets: tuple[int, ...] = struct.unpack_from(f"<{length // 2 - 2}H", self.data, vtable + 4)
        for slot, offset in enumerate(offsets):
            width = KINDS[kinds[slot]][1] if kinds.get(slot) in KINDS else 4 if slot in kinds else 1
            if offset and not 4 <= offset <= size - width:
                raise DamagedError(f"a field of the table layout at byte {vtable} lies outside of its table")
        self._vtables[vtable, name] = size, offsets
        return size, offsets
