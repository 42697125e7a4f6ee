"""The protobuf wire format: walking it in place and writing it in pieces, with no protobuf library.

Source: https://protobuf.dev/programming-guides/encoding/. A message is a run of fields; a field is a varint tag
(number << 3 | wire type) and a payload. Positions are byte offsets into the whole buffer, so that they can be named in
error messages.
"""

from __future__ import annotations

import mmap as mapping
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from mmap import ALLOCATIONGRANULARITY, mmap
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.errors import FormatError

VARINT, FIXED64, LEN, FIXED32 = 0, 1, 2, 5

Buffer: TypeAlias = bytes | mmap
"""Where a message lies. Slices of either kind are ``bytes``."""

Chunk: TypeAlias = bytes | memoryview
Chunks: TypeAlias = list[Chunk]
"""An encoded message in pieces, so that large pieces need not be copied to be put together."""

Field: TypeAlias = tuple[int, int, int, int, int]

FEW = 64  # bytes; below this a loop is faster than NumPy
DEEPEST = 64  # messages inside messages; real graphs stay below 10


class WireError(ValueError):
    """The bytes are not a protobuf message.

    Attributes:
        position: the byte in the buffer at which that shows.
        past: where the message ends that the field at ``position`` runs out of; None for other faults.
    """

    def __init__(self, position: int, what: str, past: int | None = None) -> None:
        super().__init__(what)
        self.position = position
        self.past = past


@contextmanager
def damage_told(what: str, where: str = "", hint: str = "") -> Iterator[None]:
    """Says of what is read meanwhile what a WireError shows: a FormatError of ``what``, and of what is wrong in it."""
    try:
        yield
    except WireError as error:
        raise FormatError(f"{what}: {error}", where=where, hint=hint) from None


def read_varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """The unsigned number at ``position`` and the position behind it.

    Raises:
        WireError: it does not end before ``end``, or takes more than ten bytes.
    """
    value = shift = 0
    start = position
    if position + 1 < end and buffer[position + 1] < 0x80:  # most take no more than two bytes
        byte = buffer[position]
        return (byte, position + 1) if byte < 0x80 else (byte & 0x7F | buffer[position + 1] << 7, position + 2)
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise WireError(start, "a number takes more than ten bytes")
    raise WireError(start, "a number is cut off", end)


def signed(value: int) -> int:
    """An int64, int32 or enum from its varint: negative numbers are stored modulo 2^64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def int32(value: int) -> int:
    """An int32 or enum from its varint: the low 32 bits count."""
    low = value & 0xFFFF_FFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def fields(buffer: Buffer, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in ``buffer[start:end]``: (at, number, wire type, value, stop).

    ``at`` is where the field's tag begins and ``stop`` where the field ends. ``value`` is the number itself for
    varints, and for the other wire types the position at which the payload begins.

    Raises:
        WireError: a field is malformed or runs past ``end``.
    """
    position = start
    while position < end:
        at = position
        tag = buffer[position]
        position += 1
        if tag >= 0x80:
            tag, position = read_varint(buffer, at, end)
        wire = tag & 7
        number = tag >> 3
        if wire == LEN:
            value = position + 1
            length = buffer[position] if position < end else 0x80
            if length >= 0x80:
                length, value = read_varint(buffer, position, end)
            position = value + length
            if position > end:
                raise WireError(at, f"a field of {length:,} bytes begins where {end - value:,} are left", end)
        elif wire == VARINT:
            value, position = read_varint(buffer, position, end)
        elif wire in (FIXED32, FIXED64):
            value = position
            position += 4 if wire == FIXED32 else 8
            if position > end:
                raise WireError(at, "a number is cut off", end)
        else:
            raise WireError(at, f"wire type {wire} is not in use")
        if not 0 < number < 1 << 29:
            raise WireError(at, f"no field has the number {number}")
        yield at, number, wire, value, position


def payloads(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a whole message: (number, wire type, payload); of a varint that is the unsigned number.

    Raises:
        WireError: as ``fields``.
    """
    for _, number, wire, value, stop in fields(message, 0, len(message)):
        yield number, wire, value if wire == VARINT else message[value:stop]


def spans(buffer: Buffer, start: int, end: int, number: int) -> list[tuple[int, int]]:
    """Where the messages or strings of one field lie, from first byte to behind the last."""
    return [(a, b) for _, n, kind, a, b in fields(buffer, start, end) if (n, kind) == (number, LEN)]


def numbers(buffer: Buffer, start: int, end: int) -> dict[int, int]:
    """The numbers of a message by field; of repeated ones the last."""
    return {number: value for _, number, kind, value, _ in fields(buffer, start, end) if kind == VARINT}


def release(buffer: Buffer, start: int, stop: int) -> int:
    """Gives the whole pages of a mapped file back until they are touched again; says up to where.

    The kernel maps sixteen pages around each that is touched, so that walking past 90 MB of weights without reading
    them would still count a quarter of them as this process's memory.
    """
    stop -= stop % ALLOCATIONGRANULARITY
    start -= start % ALLOCATIONGRANULARITY
    if isinstance(buffer, mmap) and hasattr(mapping, "MADV_DONTNEED") and start < stop:
        buffer.madvise(mapping.MADV_DONTNEED, start, stop - start)
    return stop


def text(buffer: Buffer, start: int, stop: int) -> str:
    """A string payload; WireError when it is not UTF-8."""
    try:
        return buffer[start:stop].decode()
    except UnicodeDecodeError:
        raise WireError(start, "a string is not valid UTF-8") from None


def view(buffer: Buffer, start: int, stop: int) -> memoryview:
    """The bytes in place, not copied."""
    return memoryview(buffer)[start:stop]


def float32(buffer: Buffer, position: int) -> float:
    """The little-endian float at a position."""
    value: float = struct.unpack_from("<f", buffer, position)[0]
    return value


def packed_varints(buffer: Buffer, start: int, stop: int) -> np.ndarray[Any, Any]:
    """A packed run of varints as a uint64 array.

    Raises:
        WireError: the last number is cut off, or one takes more than ten bytes.
    """
    if stop - start < FEW:
        numbers = []
        while start < stop:
            number, start = read_varint(buffer, start, stop)
            numbers.append(number)
        return np.array(numbers, np.uint64)
    raw = np.frombuffer(buffer, np.uint8, stop - start, start)
    ends = np.flatnonzero(raw < 0x80)
    if not ends.size or ends[-1] != raw.size - 1:
        raise WireError(start, "a number is cut off")
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    longest = int((ends - starts).max()) + 1
    if longest > 10:
        raise WireError(start, "a number takes more than ten bytes")
    values = (raw[starts] & 0x7F).astype(np.uint64)
    for place in range(1, longest):
        having = np.flatnonzero(ends - starts >= place)
        values[having] |= (raw[starts[having] + place] & 0x7F).astype(np.uint64) << np.uint64(7 * place)
    return values


def varint(value: int) -> bytes:
    """The encoding of a number; negative ones take ten bytes."""
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """A varint field; a bool is 0 or 1."""
    return varint(number << 3 | VARINT) + varint(value)


def float_field(number: int, value: float) -> bytes:
    """A field that holds a 32-bit float, with its tag."""
    return varint(number << 3 | FIXED32) + float_bytes(value)


def float_bytes(value: float) -> bytes:
    """Four bytes; what is too large for them becomes infinite, as in C."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def bytes_field(number: int, payload: bytes | str) -> bytes:
    """A string, bytes or finished message field."""
    raw = payload.encode() if isinstance(payload, str) else payload
    return header(number, len(raw)) + raw


def message_field(number: int, parts: Iterable[Chunk]) -> Chunks:
    """A message field from the pieces of the message."""
    pieces = list(parts)
    return [header(number, sum(map(len, pieces))), *pieces]


def header(number: int, length: int) -> bytes:
    """The tag and length in front of a length-delimited payload."""
    return varint(number << 3 | LEN) + varint(length)


def joined(parts: Iterable[Chunk]) -> bytes:
    """The chunks as one piece of bytes."""
    return b"".join(parts)
