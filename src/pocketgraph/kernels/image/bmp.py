"""BMP pictures as TensorFlow reads them: one byte a pixel is grey, whatever the palette; of four, one is alpha."""

from __future__ import annotations

import struct

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.image.png import as_channels

PLAIN = 0  # no compression
LEAST_HEADER = 40  # bytes of the headers that have what is read here


def bmp_pixels(data: bytes, size: tuple[int, int], channels: int) -> Array | None:
    """uint8 (rows, columns, channels) of a file of 8 or 32 bits a pixel; None for others, which Pillow reads alike.

    Args:
        data: the file.
        size: columns and rows, as Pillow read and checked them.
        channels: 0 keeps what the file has.

    Raises:
        RunError: the pixels are cut short.
    """
    if len(data) < 34 or channels not in (0, 1, 3, 4):
        return None
    begin, header = struct.unpack_from("<II", data, 10)
    bits, compression = struct.unpack_from("<HI", data, 28)
    if header < LEAST_HEADER or bits not in (8, 32) or compression != PLAIN:
        return None
    columns, rows = size
    length = (bits * columns + 31) // 32 * 4  # lines end at multiples of four bytes
    if begin + length * rows > len(data):
        raise RunError(f"Invalid image data: {len(data)} bytes where {begin + length * rows} are wanted")
    lines = np.frombuffer(data, np.uint8, length * rows, begin).reshape(rows, length)
    found = lines[:, : columns * bits // 8].reshape(rows, columns, bits // 8)
    if struct.unpack_from("<i", data, 22)[0] > 0:
        found = found[::-1]  # the last line comes first
    if bits == 32:
        found = found[:, :, [2, 1, 0, 3]]
    return np.array(as_channels(found, channels, opaque=255))
