"""Decompresses snappy's raw block format, which old tables may use for their blocks.

Source: google/snappy, format_description.txt. Tables of checkpoints are small, so plain Python is fast enough.
"""

from __future__ import annotations

from pocketgraph.errors import FormatError

LARGEST = 64 << 20  # bytes of one decompressed block; writers cut blocks at 256 KiB


def decompress(data: bytes | memoryview, where: str = "") -> bytes:
    """The original bytes.

    Raises:
        FormatError: the data is not a snappy block, or says that it holds more than LARGEST bytes.
    """
    source = bytes(data)
    size, at = _varint(source, where)
    # An element of 3 bytes makes at most 64, so a larger claim is a lie.
    if size > LARGEST or size > 64 * len(source):
        raise FormatError(f"a compressed block claims {size} bytes", where=where)
    out = bytearray()
    try:
        while at < len(source):
            tag = source[at]
            at += 1
            if tag & 3 == 0:
                length = (tag >> 2) + 1
                if length > 60:
                    width = length - 60
                    length = int.from_bytes(source[at : at + width], "little") + 1
                    at += width
                if at + length > len(source):
                    raise FormatError("a compressed block ends early", where=where)
                out += source[at : at + length]
                at += length
            else:
                if tag & 3 == 1:
                    length, offset = ((tag >> 2) & 7) + 4, ((tag >> 5) << 8) | source[at]
                    at += 1
                else:
                    width = 2 if tag & 3 == 2 else 4
                    length, offset = (tag >> 2) + 1, int.from_bytes(source[at : at + width], "little")
                    at += width
                if not 0 < offset <= len(out):
                    raise FormatError("a compressed block copies from before its start", where=where)
                start = len(out) - offset
                if offset >= length:
                    out += out[start : start + length]
                else:  # the copy overlaps itself: a run
                    out += (out[start:] * (length // offset + 1))[:length]
            if len(out) > size:
                break
    except IndexError:
        raise FormatError("a compressed block ends early", where=where) from None
    if len(out) != size:
        raise FormatError(f"a compressed block holds {len(out)} bytes and claims {size}", where=where)
    return bytes(out)


def _varint(source: bytes, where: str) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(source[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value, position + 1
    raise FormatError("a compressed block has no length", where=where)
