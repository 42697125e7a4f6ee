"""Writes FlatBuffers: the binary form of LiteRT models, structure first and big data last.

Source of the format: the FlatBuffers binary specification. Every object is written before the objects that it points
to, so that positions are final as soon as they are given and alignment is alignment in the file.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

SCALARS = {
    "i8": ("b", 1), "u8": ("B", 1), "bool": ("?", 1), "i16": ("h", 2), "u16": ("H", 2), "i32": ("i", 4),
    "u32": ("I", 4), "f32": ("f", 4), "i64": ("q", 8), "u64": ("Q", 8),
}  # fmt: skip
"""struct codes and sizes of the scalar kinds; ``[kind]`` is a vector of one, ``table``, ``[table]``, ``string`` and
``blob`` are the others."""

Entry: TypeAlias = tuple[int, str, Any]
Table: TypeAlias = Sequence[Entry]
"""A table: (slot, kind, value) for each field that is present."""


class Blob:
    """Room for bytes that somebody else writes: a ``[u8]`` vector at the end of the file.

    Attributes:
        size: how many bytes.
        position: where in the file they start; set by ``layout``, a multiple of ``ALIGNMENT``.
    """

    __slots__ = ("position", "size")
    ALIGNMENT = 64

    def __init__(self, size: int) -> None:
        self.size = size
        self.position = -1


def layout(root: Table, identifier: bytes) -> tuple[bytes, list[Blob], int]:
    """Encodes a tree of tables.

    Args:
        root: the root table; fields of kind ``blob`` hold a Blob.
        identifier: the four bytes that name the file type.

    Returns:
        The head of the file, the blobs in the order they follow it, and the size of the whole file. Between the
        pieces lie padding and the blobs' lengths: see ``prefix``.
    """
    writer = _Writer()
    writer.out += b"\0\0\0\0" + identifier
    position = writer.table(root)
    writer.write_shared()
    struct.pack_into("<I", writer.out, 0, position)
    end = len(writer.out)
    for patch, blob in writer.blobs:
        start = -(-(end + 4) // Blob.ALIGNMENT) * Blob.ALIGNMENT
        blob.position = start
        struct.pack_into("<I", writer.out, patch, start - 4 - patch)
        end = start + blob.size
    return bytes(writer.out), [blob for _, blob in writer.blobs], end


def prefix(blob: Blob, position: int) -> bytes:
    """The bytes between ``position``, the end of what is written so far, and the blob's own bytes."""
    return bytes(blob.position - 4 - position) + struct.pack("<I", blob.size)


class _Writer:
    def __init__(self) -> None:
        self.out = bytearray()
        self.blobs: list[tuple[int, Blob]] = []
        self.shared: dict[tuple[int, ...], list[int]] = {}
        """Vectors of 64-bit numbers and where they are pointed at from: zero points, the same ones for many tensors."""

    def write_shared(self) -> None:
        """Writes each of the vectors that were put off, once."""
        for value, places in self.shared.items():
            target = self.object("[i64]", value)
            for where in places:
                self.point(where, target)
        self.shared.clear()

    def align(self, size: int) -> None:
        self.out += bytes(-len(self.out) % size)

    def table(self, table: Table) -> int:
        """Writes a table with its vtable and then what it points to; gives its position."""
        fields = sorted(table, key=lambda entry: -_inline_size(entry[1]))
        slots = max((slot for slot, _, _ in table), default=-1) + 1
        offsets = [0] * slots
        cursor = 4
        for slot, kind, _ in fields:
            size = _inline_size(kind)
            cursor = -(-cursor // size) * size
            offsets[slot] = cursor
            cursor += size
        widest = max((_inline_size(kind) for _, kind, _ in table), default=4)
        head = 4 + 2 * slots
        self.out += bytes(-(len(self.out) + head) % max(4, widest))
        self.out += struct.pack(f"<HH{slots}H", head, cursor, *offsets)
        start = len(self.out)
        self.out += struct.pack("<i", head) + bytes(cursor - 4)
        pending: list[tuple[int, str, Any]] = []
        for slot, kind, value in fields:
            where = start + offsets[slot]
            if kind in SCALARS:
                struct.pack_into("<" + SCALARS[kind][0], self.out, where, value)
            elif kind == "blob":
                self.blobs.append((where, value))
            elif kind == "[i64]":
                self.shared.setdefault(tuple(value), []).append(where)
            else:
                pending.append((where, kind, value))
        for where, kind, value in pending:
            self.point(where, self.object(kind, value))
        return start

    def point(self, where: int, target: int) -> None:
        struct.pack_into("<I", self.out, where, target - where)

    def object(self, kind: str, value: Any) -> int:
        if kind == "table":
            return self.table(value)
        if kind == "string":
            return self.string(value)
        if kind == "[table]":
            return self.tables(value)
        code, size = SCALARS[kind[1:-1]]
        self.out += bytes(-(len(self.out) + 4) % max(4, size))
        start = len(self.out)
        self.out += struct.pack(f"<I{len(value)}{code}", len(value), *value)
        return start

    def string(self, text: str) -> int:
        data = text.encode()
        self.align(4)
        start = len(self.out)
        self.out += struct.pack("<I", len(data)) + data + b"\0"
        return start

    def tables(self, tables: Sequence[Table]) -> int:
        self.align(4)
        start = len(self.out)
        self.out += struct.pack("<I", len(tables)) + bytes(4 * len(tables))
        for index, table in enumerate(tables):
            self.point(start + 4 + 4 * index, self.table(table))
        return start


def _inline_size(kind: str) -> int:
    return SCALARS[kind][1] if kind in SCALARS else 4
