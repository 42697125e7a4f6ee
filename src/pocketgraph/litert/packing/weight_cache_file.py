"""The file in which XNNPACK keeps packed weights between processes.

Source of the format: the weight cache of LiteRT's XNNPACK delegate, of the version in ``VERSION``. A header points to a
FlatBuffer behind the weights, which lists them: by what they were packed for, and by the places of the weights and the
bias among the model file's buffers. XNNPACK looks weights up by all three, and checks, before it uses a file, that its
kernels still take weights in the order that the fingerprints stand for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence, Sized
from typing import NamedTuple, TypeVar

from pocketgraph.graph.record import Record
from pocketgraph.litert.writing import flatbuffer

Piece = TypeVar("Piece", bound=Sized)

VERSION = 4
HEADER = struct.Struct("<QQQ")  # the version, and where the list is and how long
ALIGNMENT = 128  # bytes: what the places of weights, and of the list, are multiples of
FINGERPRINTS, BUFFERS, BASE = 0, 1, 2  # slots of the list


class PackedBuffer(NamedTuple):
    """Weights of one operation, packed together with its bias.

    Attributes:
        algorithm: what they were packed for.
        weights, bias: places among the model file's buffers.
        offset: where they are, from the file's base on.
        size: in bytes.
    """

    algorithm: int
    weights: int
    bias: int
    offset: int
    size: int


class WeightCacheFile(Record):
    """What a file lists.

    Attributes:
        fingerprints: of the kernels, as whole words.
        buffers: the weights.
        base: where the first of them is.
    """

    fingerprints: tuple[int, ...]
    buffers: tuple[PackedBuffer, ...]
    base: int


def read(content: bytes) -> WeightCacheFile:
    """What a file lists.

    Raises:
        ValueError: it is of another version, or damaged.
    """
    try:
        version, start, size = HEADER.unpack_from(content)
        if version != VERSION or start + size != len(content):
            raise ValueError("weights were packed in a way that is not known")
        return _Reader(content[start:]).listed()
    except (struct.error, IndexError) as error:
        raise ValueError("a file of packed weights is damaged") from error


class _Reader:
    """Follows the pointers of a list."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def listed(self) -> WeightCacheFile:
        root = self._number("<I", 0)
        prints, buffers = (self._vector(root, slot) for slot in (FINGERPRINTS, BUFFERS))
        tables = [place + self._number("<I", place) for place in (buffers[0] + 4 * at for at in range(buffers[1]))]
        return WeightCacheFile(
            tuple(self._number("<Q", prints[0] + 8 * at) for at in range(prints[1])),
            tuple(PackedBuffer(*(self._field(table, slot) for slot in range(5))) for table in tables),
            self._field(root, BASE),
        )

    def _number(self, form: str, place: int) -> int:
        if place < 0:
            raise ValueError("a file of packed weights is damaged")
        found: int = struct.unpack_from(form, self._content, place)[0]
        return found

    def _place(self, table: int, slot: int) -> int | None:
        vtable = table - self._number("<i", table)
        offset = self._number("<H", vtable + 4 + 2 * slot) if 4 + 2 * slot < self._number("<H", vtable) else 0
        return table + offset if offset else None

    def _field(self, table: int, slot: int) -> int:
        place = self._place(table, slot)
        return 0 if place is None else self._number("<Q", place)

    def _vector(self, table: int, slot: int) -> tuple[int, int]:
        """Where the elements begin, and how many there are."""
        place = self._place(table, slot)
        if place is None:
            return 0, 0
        start = place + self._number("<I", place)
        return start + 4, self._number("<I", start)


def placed(buffers: Sequence[PackedBuffer]) -> list[PackedBuffer]:
    """The same buffers, each where it comes to lie when all are written one after the other."""
    found, position = [], 0
    for buffer in buffers:
        position = _aligned(position)
        found.append(buffer._replace(offset=position))
        position += buffer.size
    return found


def pieces(
    buffers: Sequence[PackedBuffer], fingerprints: Sequence[int], packed: Iterator[Piece]
) -> Iterator[bytes | Piece]:
    """The bytes of a file in order.

    Args:
        buffers: what it holds, from ``placed``.
        fingerprints: of the kernels.
        packed: gives the bytes of one buffer after the other, in as many pieces as it likes; or what stands for them
            and has their length.
    """
    end = buffers[-1].offset + buffers[-1].size
    start = _aligned(ALIGNMENT + end)
    tables = [tuple((slot, "u64", number) for slot, number in enumerate(buffer)) for buffer in buffers]
    root = ((FINGERPRINTS, "[u64]", fingerprints), (BUFFERS, "[table]", tables), (BASE, "u64", ALIGNMENT))
    listed, _, _ = flatbuffer.layout(root, bytes(4))
    yield HEADER.pack(VERSION, start, len(listed)) + bytes(ALIGNMENT - HEADER.size)
    position = 0
    for buffer in buffers:
        yield bytes(buffer.offset - position)
        left = buffer.size
        while left > 0:
            piece = next(packed)
            left -= len(piece)
            yield piece
        position = buffer.offset + buffer.size
    yield bytes(start - ALIGNMENT - end)
    yield listed


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT
