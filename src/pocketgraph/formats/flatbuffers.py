"""Reads FlatBuffers that may be damaged: every place is looked at before it is read, and nothing is read twice over.

LiteRT models and their metadata are such; litert/writing/flatbuffer.py writes them. Source of the format: the
FlatBuffers binary specification.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

from pocketgraph.errors import FormatError
from pocketgraph.protobuf.wire import Buffer

SCALARS = {
    "i8": ("b", 1), "u8": ("B", 1), "bool": ("?", 1), "u16": ("H", 2), "i32": ("i", 4), "u32": ("I", 4),
    "f32": ("f", 4), "i64": ("q", 8), "u64": ("Q", 8),
}  # fmt: skip
"""struct codes and sizes of the scalar kinds; ``string``, ``[kind]``, a table's name and ``[Name]`` are the others."""
SMALLEST = 1 << 16  # elements of vectors that are looked at in any file; beyond, four for each byte
Schema: TypeAlias = Mapping[str, Mapping[int, str]]
"""The kind of each field of a table by its slot, by the table's name."""


class Table:
    """A table whose bounds are verified; its fields are found by their slots when they are asked for.

    Asking raises FormatError where what a field points to lies outside of the buffer.

    Attributes:
        at: where it begins.
    """

    __slots__ = ("_offsets", "at", "reader")

    def __init__(self, reader: FlatBufferReader, at: int, offsets: tuple[int, ...]) -> None:
        self.reader = reader
        self.at = at
        self._offsets = offsets

    @staticmethod
    def root(buffer: Buffer) -> Table:
        """The root table of a buffer."""
        reader = FlatBufferReader(memoryview(buffer))
        return reader.table(reader.target(0))

    def place(self, slot: int) -> int:
        """Where a field is, 0 when it is left out."""
        offset = self._offsets[slot] if slot < len(self._offsets) else 0
        return self.at + offset if offset else 0

    def number(self, slot: int, kind: str, default: Any = 0) -> Any:
        """A scalar field."""
        place = self.place(slot)
        return self.reader.scalar(place, kind) if place else default

    def numbers(self, slot: int, kind: str = "i32") -> tuple[Any, ...]:
        """A vector of scalars; empty when it is left out."""
        place = self.place(slot)
        return self.reader.scalars(place, kind) if place else ()

    def data(self, slot: int) -> bytes | None:
        """The bytes of a string or of a vector of bytes; None where it is left out."""
        place = self.place(slot)
        if not place:
            return None
        start, count = self.reader.vector(place, 1)
        return bytes(self.reader.data[start : start + count])

    def text(self, slot: int) -> str:
        """A string field; "" where it is left out."""
        return (self.data(slot) or b"").decode("utf-8", "replace")

    def table(self, slot: int, kind: str = "") -> Table | None:
        """A table field; None where it is left out."""
        place = self.place(slot)
        return self.reader.table(self.reader.target(place), kind) if place else None

    def tables(self, slot: int, kind: str = "") -> list[Table]:
        """A vector of tables; empty when it is left out."""
        place = self.place(slot)
        return self.reader.tables(place, kind) if place else []


class FlatBufferReader:
    """The bytes of a FlatBuffer, each place looked at before it is read; all methods raise FormatError.

    Args:
        data: the bytes.
        schema: what fields hold; of a table whose kind is in it, all that fields point to is looked at.
    """

    def __init__(self, data: memoryview, schema: Schema | None = None) -> None:
        self.data = data
        self.end = len(data)
        self._schema = schema or {}
        self._left = SMALLEST + 4 * self.end
        self._vtables: dict[tuple[int, str], tuple[int, tuple[int, ...]]] = {}

    def scalar(self, place: int, kind: str) -> Any:
        """The number at a place."""
        code, size = SCALARS[kind]
        if place < 0 or place + size > self.end:
            raise FormatError(f"a number at byte {place} lies outside of the file")
        return struct.unpack_from(f"<{code}", self.data, place)[0]

    def target(self, place: int) -> int:
        """Where an offset points; always forwards."""
        offset = self.scalar(place, "u32")
        if not offset:
            raise FormatError(f"an offset of 0 at byte {place}")
        return place + int(offset)

    def spend(self, count: int) -> None:
        """Counts what is looked at: places that are used again and again may not make a small file endless."""
        self._left -= count
        if self._left < 0:
            raise FormatError("its vectors overlap more than those of any model")

    def vector(self, place: int, size: int) -> tuple[int, int]:
        """(where the elements of a vector begin, how many there are), each of ``size`` bytes."""
        start = self.target(place)
        count = int(self.scalar(start, "u32"))
        if start + 4 + count * size > self.end:
            raise FormatError(f"a vector of {count} elements at byte {start} ends outside of the file")
        return start + 4, count

    def scalars(self, place: int, kind: str) -> tuple[Any, ...]:
        """The numbers of a vector."""
        code, size = SCALARS[kind]
        start, count = self.vector(place, size)
        self.spend(count)
        return struct.unpack_from(f"<{count}{code}", self.data, start)

    def tables(self, place: int, kind: str = "") -> list[Table]:
        """The tables of a vector."""
        start, count = self.vector(place, 4)
        self.spend(count)
        return [self.table(self.target(start + 4 * index), kind) for index in range(count)]

    def table(self, at: int, kind: str = "") -> Table:
        """A table and all that it points to but tables; without a kind only the fields' places."""
        return self.fields(at, self._schema[kind] if kind else {}, kind)

    def fields(self, at: int, kinds: Mapping[int, str], name: str) -> Table:
        """A table with fields of these kinds; ``name`` is the same for the same kinds."""
        vtable = at - int(self.scalar(at, "i32"))
        known = self._vtables.get((vtable, name))
        size, offsets = self._vtable(vtable, kinds, name) if known is None else known
        if at + size > self.end:
            raise FormatError(f"a table at byte {at} ends outside of the file")
        table = Table(self, at, offsets)
        for slot, kind in kinds.items():
            if kind in SCALARS or not table.place(slot):
                continue
            if kind == "string":
                start, count = self.vector(table.place(slot), 1)
                if start + count >= self.end or self.data[start + count]:
                    raise FormatError(f"a name at byte {start} does not end")
            elif kind[0] == "[" and kind[1:-1] in SCALARS:
                self.vector(table.place(slot), SCALARS[kind[1:-1]][1])
        return table

    def _vtable(self, vtable: int, kinds: Mapping[int, str], name: str) -> tuple[int, tuple[int, ...]]:
        """(bytes of the table, the offset of each slot) of a layout; it is the same for many tables."""
        if vtable < 0 or vtable + 4 > self.end:
            raise FormatError(f"a table's layout at byte {vtable} lies outside of the file")
        length, size = struct.unpack_from("<HH", self.data, vtable)
        if length < 4 or length % 2 or vtable + length > self.end or size < 4:
            raise FormatError(f"a table's layout at byte {vtable} is impossible")
        offsets: tuple[int, ...] = struct.unpack_from(f"<{length // 2 - 2}H", self.data, vtable + 4)
        for slot, offset in enumerate(offsets):
            width = SCALARS[kinds[slot]][1] if kinds.get(slot) in SCALARS else 4 if slot in kinds else 1
            if offset and not 4 <= offset <= size - width:
                raise FormatError(f"a field of the table layout at byte {vtable} lies outside of its table")
        self._vtables[vtable, name] = size, offsets
        return size, offsets
