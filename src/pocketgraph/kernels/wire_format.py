"""Protobuf messages taken apart and put together: varints, fields, with no protobuf library."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from pocketgraph.errors import RunError

VARINT, FIXED64, LEN, FIXED32 = 0, 1, 2, 5  # wire types


class MalformedRecordError(ValueError):
    """The bytes are no record."""


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: (number, wire type, payload); the payload is bytes, or an unsigned int of a varint."""
    position, end = 0, len(data)
    while position < end:
        tag, position = read_varint(data, position)
        wire = tag & 7
        payload: Any
        if wire == VARINT:
            payload, position = read_varint(data, position)
        else:
            size = {FIXED32: 4, FIXED64: 8}.get(wire, 0)
            if wire == LEN:
                size, position = read_varint(data, position)
            elif not size:
                raise MalformedRecordError
            payload, position = data[position : position + size], position + size
        if position > end or not tag >> 3:
            raise MalformedRecordError
        yield tag >> 3, wire, payload


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at ``position`` (modulo 2^64) and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise MalformedRecordError
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise MalformedRecordError


def varint(value: int) -> bytes:
    """The encoding of a number that is not negative."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, payload: bytes) -> bytes:
    """A string, bytes or message field."""
    return varint(number << 3 | LEN) + varint(len(payload)) + payload


def number_field(number: int, value: int) -> bytes:
    """A varint field of a message, with its tag."""
    return varint(number << 3) + varint(value)


def double_field(number: int, value: float) -> bytes:
    """A double of a message, which is left out when all of its bits are zero."""
    stored = struct.pack("<d", value)
    return varint(number << 3 | 1) + stored if any(stored) else b""


def entries(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The fields of a message as (number, wire type, payload).

    Raises:
        RunError: it is none.
    """
    position = 0
    try:
        while position < len(data):
            tag, position = read_varint(data, position)
            kind, start = tag & 7, position
            if kind == LEN:
                size, start = read_varint(data, position)
                position = start + size
            elif kind == 0:
                _, position = read_varint(data, position)
            elif kind in (1, 5):
                position += 8 if kind == 1 else 4
            else:
                raise ValueError
            if position > len(data) or not tag >> 3:
                raise ValueError
            yield tag >> 3, kind, data[start:position]
    except (ValueError, IndexError):
        raise RunError("Could not parse one of the summary inputs") from None
