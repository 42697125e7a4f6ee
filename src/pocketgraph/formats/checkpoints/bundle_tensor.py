"""The bytes of one tensor in a V2 checkpoint's data file: how they become an array, and an array becomes them.

Numbers lie row-major in the writer's byte order, with a checksum over the bytes. Strings lie as all lengths (varints),
a checksum of the lengths, then all contents; see decode_strings.
"""

from __future__ import annotations

import struct
import sys

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats import crc32c
from pocketgraph.graph import DType
from pocketgraph.graph.tensor import Array
from pocketgraph.protobuf.wire import varint

_DAMAGED = "the file is damaged, copy it again"


def decode(data: memoryview, dtype: DType, shape: tuple[int, ...], stored: int, big_endian: bool, place: str) -> Array:
    """The values, without copying where the byte order is this machine's.

    Args:
        data: the entry's bytes; as long as dtype and shape ask for.
        stored: the masked checksum of the entry.
        big_endian: how the writer's machine ordered bytes.
        place: names file, tensor and offset in errors.

    Raises:
        FormatError: a checksum does not match.
    """
    if not dtype.size:
        return decode_strings(data, shape, stored, big_endian, place)
    _compare(crc32c.masked(crc32c.checksum(data)), stored, place)
    if not len(data):
        try:
            return np.zeros(shape, dtype.numpy)
        except ValueError:  # no elements, and yet a dimension beyond what an array can have
            raise FormatError(f"no array can have the shape {list(shape)}", where=place) from None
    if big_endian == (sys.byteorder == "big"):
        return np.frombuffer(data, dtype.numpy).reshape(shape)
    unit = dtype.size // 2 if dtype.name.startswith("complex") else dtype.size
    units: Array = np.frombuffer(data, f"u{unit}").byteswap()
    values: Array = units.view(dtype.numpy).reshape(shape)
    return values


def encode(values: Array, dtype: DType) -> tuple[bytes | Array, int]:
    """(bytes, masked checksum) of an array, little-endian."""
    if not dtype.size:
        return encode_strings(values)
    data: Array = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return data, crc32c.masked(crc32c.checksum(data))


def decode_strings(data: memoryview, shape: tuple[int, ...], stored: int, big_endian: bool, place: str) -> Array:
    """An object array of bytes.

    The running checksum goes over each length as a fixed 32-bit number (64-bit when larger), the four bytes of the
    lengths' own checksum, and the contents.
    """
    count = 1
    for size in shape:
        count *= size
    order = ">" if big_endian else "<"
    lengths: list[int] = []
    at = 0
    for _ in range(count):
        length = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise FormatError(f"the lengths of its strings do not end; {_DAMAGED}", where=place)
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
    if at + 4 + sum(lengths) != len(data) and (count or len(data)):
        raise FormatError(
            f"its strings need {at + 4 + sum(lengths)} bytes, there are {len(data)}; {_DAMAGED}", where=place
        )
    running = crc32c.checksum(b"".join(_fixed(length, order) for length in lengths))
    out = np.empty(count, object)
    if len(data):
        kept = bytes(data[at : at + 4])
        (expected,) = struct.unpack(order + "I", kept)
        if crc32c.masked(running) != expected:
            raise FormatError(
                f"the length checksum does not match: expected {expected:08x} but actual is "
                f"{crc32c.masked(running):08x}; {_DAMAGED}", where=place,
            )  # fmt: skip
        running = crc32c.checksum(data[at + 4 :], crc32c.checksum(kept, running))
        at += 4
    _compare(crc32c.masked(running), stored, place)
    for position, length in enumerate(lengths):
        out[position] = bytes(data[at : at + length])
        at += length
    return out.reshape(shape)


def encode_strings(values: Array) -> tuple[bytes, int]:
    """(bytes, masked checksum) of an array of bytes objects."""
    items: list[bytes] = values.reshape(-1).tolist()
    running = crc32c.checksum(b"".join(_fixed(len(item), "<") for item in items))
    kept = struct.pack("<I", crc32c.masked(running))
    contents = b"".join(items)
    running = crc32c.checksum(contents, crc32c.checksum(kept, running))
    return b"".join(varint(len(item)) for item in items) + kept + contents, crc32c.masked(running)


def _fixed(length: int, order: str) -> bytes:
    return struct.pack(order + ("I" if length < 1 << 32 else "Q"), length)


def _compare(actual: int, stored: int, place: str) -> None:
    if actual != stored:
        raise FormatError(
            f"checksum does not match: stored {stored:08x}, of the bytes read {actual:08x}; {_DAMAGED}", where=place
        )
