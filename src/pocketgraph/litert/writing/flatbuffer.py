"""Writes FlatBuffers: the binary form of LiteRT models, structure first and big data last.

Source of the format: the FlatBuffers binary specification. Every object is written before the objects that it points
to, so that positions are final as soon as they are given and alignment is alignment in the file.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pocketgraph.errors import FormatError
from pocketgraph.graph.record import Record

SCALARS = {
    "i8": ("b", 1), "u8": ("B", 1), "bool": ("?", 1), "i16": ("h", 2), "u16": ("H", 2), "i32": ("i", 4),
    "u32": ("I", 4), "f32": ("f", 4), "i64": ("q", 8), "u64": ("Q", 8),
}  # fmt: skip
"""struct codes and sizes of the scalar kinds; ``[kind]`` is a vector of one, ``table``, ``[table]``, ``string`` and
``blob`` are the others. ``=`` before a kind that points somewhere says that equal values, which must be hashable, may
share a place: thousands of operations have a dozen shapes and options."""

Entry: TypeAlias = tuple[int, str, Any]
Table: TypeAlias = Sequence[Entry]
"""A table: (slot, kind, value) for each field that is present."""


class Blob:
    """Room for bytes that somebody else writes: a ``[u8]`` vector at the end of the file.

    Attributes:
        size: how many bytes.
        alignment: what their position is a multiple of: ``ALIGNMENT``, or less for a few bytes, as shapes and biases
            are; LiteRT asks for 16.
        position: where in the file they start; set by ``layout``.
    """

    __slots__ = ("alignment", "position", "size")
    ALIGNMENT = 64
    FEW = 1024  # bytes, below which it is not worth up to 63 more that they begin with a line of the CPU's cache

    def __init__(self, size: int) -> None:
        self.size = size
        self.alignment = 16 if size < self.FEW else self.ALIGNMENT
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
    writer = _FlatbufferWriter()
    writer.out += b"\0\0\0\0" + identifier
    position = writer.table(root)
    writer.write_shared()
    struct.pack_into("<I", writer.out, 0, position)
    end = len(writer.out)
    for patch, blob in writer.blobs:
        start = -(-(end + 4) // blob.alignment) * blob.alignment
        blob.position = start
        struct.pack_into("<I", writer.out, patch, start - 4 - patch)
        end = start + blob.size
    return bytes(writer.out), [blob for _, blob in writer.blobs], end


def prefix(blob: Blob, position: int) -> bytes:
    """The bytes between ``position``, the end of what is written so far, and the blob's own bytes."""
    return bytes(blob.position - 4 - position) + struct.pack("<I", blob.size)


class _TableForm(Record):
    """How tables with the same fields are laid out; a program has thousands of tables and a dozen forms.

    Attributes:
        head: bytes of the vtable, which comes before the table.
        alignment: what the table's own position is a multiple of.
        vtable: its bytes.
        content: packs the distance to the vtable and then, widest first, the fields; pointers are zero at first.
        order: which entry of the table each of those is, -1 for a pointer.
        pointers: (entry, place within the table, kind) of each field that points to something.
    """

    head: int
    alignment: int
    vtable: bytes
    content: struct.Struct
    order: tuple[int, ...]
    pointers: tuple[tuple[int, int, str], ...]


@lru_cache(maxsize=256)
def _form(entries: tuple[tuple[int, str], ...]) -> _TableForm:
    """The layout of tables with these (slot, kind) entries."""
    sizes = [SCALARS[kind][1] if kind in SCALARS else 4 for _, kind in entries]
    slots = max((slot for slot, _ in entries), default=-1) + 1
    offsets = [0] * slots
    cursor, packed = 4, "<i"
    order: list[int] = []
    pointers: list[tuple[int, int, str]] = []
    for index in sorted(range(len(entries)), key=lambda index: -sizes[index]):
        (slot, kind), size = entries[index], sizes[index]
        gap = -cursor % size
        offsets[slot] = cursor + gap
        packed += f"{gap}x{SCALARS[kind][0] if kind in SCALARS else 'I'}"
        order.append(index if kind in SCALARS else -1)
        if kind not in SCALARS:
            pointers.append((index, cursor + gap, kind))
        cursor += gap + size
    head = 4 + 2 * slots
    vtable = struct.pack(f"<HH{slots}H", head, cursor, *offsets)
    alignment = max(4, max(sizes, default=4))
    return _TableForm(head, alignment, vtable, struct.Struct(packed), tuple(order), tuple(pointers))


_POINTER = struct.Struct("<I")


class _FlatbufferWriter:
    def __init__(self) -> None:
        self.out = bytearray()
        self.blobs: list[tuple[int, Blob]] = []
        self.vtables: dict[bytes, int] = {}
        """Where each layout of a table is described, for all tables that have it."""
        self.shared: dict[tuple[str, Any], list[int]] = {}
        """What may be pointed at from many places, by kind and value, and from where it is."""

    def write_shared(self) -> None:
        """Writes each of the objects that were put off, once, and then what they share in turn."""
        while self.shared:
            waiting, self.shared = self.shared, {}
            for (kind, value), places in waiting.items():
                target = self.object(kind[1:], value)
                for where in places:
                    self.point(where, target)

    def align(self, size: int) -> None:
        self.out += bytes(-len(self.out) % size)

    def table(self, table: Table) -> int:
        """Writes a table, with its vtable unless there is one like it, and what it points to; gives its position.

        Raises:
            FormatError: a number has more bits than its field.
        """
        form = _form(tuple([(slot, kind) for slot, kind, _ in table]))
        out = self.out
        known = self.vtables.get(form.vtable)
        head = form.head if known is None else 0
        out += bytes(-(len(out) + head) % form.alignment)
        start = len(out) + head
        if known is None:
            known = self.vtables[form.vtable] = len(out)
            out += form.vtable
        numbers = [table[index][2] if index >= 0 else 0 for index in form.order]
        try:
            out += form.content.pack(start - known, *numbers)
        except struct.error:
            raise FormatError(
                f"a LiteRT file has no room for a number among {numbers}", hint="look for it in the graph's attributes"
            ) from None
        for index, offset, kind in form.pointers:
            value, where = table[index][2], start + offset
            if kind == "blob":
                self.blobs.append((where, value))
            elif kind[0] == "=":
                self.shared.setdefault((kind, value), []).append(where)
            else:
                _POINTER.pack_into(out, where, self.object(kind, value) - where)
        return start

    def point(self, where: int, target: int) -> None:
        _POINTER.pack_into(self.out, where, target - where)

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
