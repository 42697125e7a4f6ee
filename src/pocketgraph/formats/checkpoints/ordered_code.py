"""Keys under which checkpoints store the slices of a partitioned tensor: numbers and names in an order-keeping code.

Source: tensorflow/core/lib/strings/ordered_code.cc and util/saved_tensor_slice_util.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

FULL = -1  # the length that stands for "all of this dimension"; its start is 0
_ESCAPES = {0x00: b"\x00\xff", 0xFF: b"\xff\x00"}


def slice_key(name: str, extents: Sequence[tuple[int, int]]) -> bytes:
    """The table key of one slice.

    Args:
        name: the whole tensor's name.
        extents: (start, length) a dimension; ``(0, FULL)`` for a whole dimension.
    """
    key = unsigned(0) + text(name.encode()) + unsigned(len(extents))
    return key + b"".join(signed(start) + signed(length) for start, length in extents)


def unsigned(value: int) -> bytes:
    """A length byte, then the number's bytes, highest first, without leading zeros."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def text(value: bytes) -> bytes:
    """The string with 00 and ff escaped, ended by 00 01."""
    return b"".join(_ESCAPES.get(byte) or bytes([byte]) for byte in value) + b"\x00\x01"


def signed(value: int) -> bytes:
    """One byte for -64…63; each further byte adds seven bits, the count of bytes is told by leading one bits.

    Args:
        value: fits in 64 bits.
    """
    bits = (~value if value < 0 else value).bit_length()
    size = bits // 7 + 1
    header = ((1 << size) - 1) << (16 - size)
    encoded = bytearray(value.to_bytes(10, "big", signed=True)[10 - size :])
    encoded[0] ^= header >> 8
    if size > 1:
        encoded[1] ^= header & 0xFF
    return bytes(encoded)
