"""PNG pictures in all their depths, as libpng hands them to TensorFlow: 16 bits a channel, grey, alpha."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, reserve

BANDS = {0: 1, 2: 3, 4: 2, 6: 4}
"""By colour type: how many values a pixel has; palettes are never 16 bits deep."""
HIDING = {0: 1, 2: 3}
"""By colour type without alpha: how many values name the colour that shows nothing."""
GREY = (9797, 19234, 3737)
"""What red, green and blue weigh in 32,768ths (libpng cuts 0.299 and 0.587, and gives blue the rest)."""
UNIT = 100_000
"""What a file writes for the gamma 1."""
SRGB_GAMMA = 45_455
GAMMAS = range(16, 625_000_001)
"""What libpng takes; it leaves other gammas out."""
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
"""Of an interlaced picture: first row, first column, steps down and along (PNG specification, Adam7)."""


def png_pixels(data: bytes, picture: Any, channels: int, deep: bool) -> Array:
    """(rows, columns, channels), uint16 when ``deep``, else uint8; 0 channels keeps what the file has.

    Args:
        data: the file.
        picture: the same, opened by Pillow, which decodes all that is 8 bits deep or less.

    Raises:
        RunError: the data are cut short or damaged.
    """
    try:
        if data[24:25] == b"\x10":
            array = wide_pixels(data)
        else:
            mode = picture.mode if picture.mode in ("L", "LA", "RGB", "RGBA") else None
            if mode is None:
                palette = "RGBA" if "transparency" in picture.info else "RGB"
                mode = palette if picture.mode == "P" else "L"
            array = np.asarray(picture.convert(mode))
            array = array.reshape(*array.shape[:2], -1)
        if channels == 4 and data[25] in HIDING:
            array = with_alpha(array, data)
    except (OSError, ValueError, SyntaxError, struct.error, zlib.error) as error:
        raise RunError(f"Invalid PNG data: {error}") from error
    if channels == 1 and array.shape[2] >= 3:
        array = grey(array[:, :, :3], *brightness(data, deep))
    array = as_channels(array, channels, opaque=(1 << min(data[24], 16)) - 1)
    if deep:
        return array if array.dtype == np.uint16 else array.astype(np.uint16) * np.uint16(257)
    return (array >> np.uint16(8)).astype(np.uint8) if array.dtype == np.uint16 else np.array(array)


def with_alpha(array: Array, data: bytes) -> Array:
    """Grey or colour, and behind it an alpha that hides the one value which the file's tRNS names, if it does."""
    bands = HIDING[data[25]]
    hidden = _before(data, b"IDAT").get(b"tRNS", b"")
    if len(hidden) != 2 * bands:
        return array
    most = (1 << data[24]) - 1  # bits beyond the file's depth do not count
    shown = (np.frombuffer(hidden, ">u2") & most) * (1 if most > 255 else 255 // most)
    opaque = np.iinfo(array.dtype).max
    alpha = np.where((array == shown).all(axis=2, keepdims=True), 0, opaque).astype(array.dtype)
    return np.concatenate([array, alpha], axis=2)


def as_channels(array: Array, channels: int, opaque: int) -> Array:
    """Grey made colour and the other way round, alpha dropped or added; 0 channels leaves all as it is.

    Args:
        opaque: the alpha that is added: the largest value of the file, which of 1, 2 and 4 bits is a small one.
    """
    bands = array.shape[2]
    if channels in (0, bands):
        return array
    colours = array[:, :, : bands - (bands in (2, 4))]
    if channels == 1:
        return grey(colours) if colours.shape[2] == 3 else colours
    colours = colours if colours.shape[2] == 3 else np.repeat(colours, 3, axis=2)
    if channels == 3:
        return colours
    alpha = array[:, :, -1:] if bands in (2, 4) else np.full((*array.shape[:2], 1), opaque, array.dtype)
    return np.concatenate([colours, alpha], axis=2)


def grey(colours: Array, gamma: int = UNIT, lost: int = 0) -> Array:
    """(rows, columns, 1) of red, green and blue, as libpng does it.

    Where the file says its gamma, brightness is what is added up, by tables; without, 8 bits are cut, 16 bits rounded.

    Args:
        gamma: in 100,000ths, as ``brightness`` says it.
        lost: how many of 16 bits libpng's tables leave out.
    """
    even = (colours[:, :, :1] == colours[:, :, 1:2]) & (colours[:, :, :1] == colours[:, :, 2:])
    bits = 8 * colours.dtype.itemsize
    if abs(gamma - UNIT) <= UNIT // 20:
        half = 16384 if bits == 16 else 0
        result = (colours.astype(np.int64) * GREY).sum(axis=2, keepdims=True) + half >> 15
    else:
        lost = lost if bits == 16 else 0
        inverse = (10**10 + gamma // 2) // gamma
        light = _powers(inverse, bits, lost)[colours >> lost]
        sums = (light * GREY).sum(axis=2, keepdims=True) + 16384 >> 15
        result = _powers((10**10 + inverse // 2) // inverse, bits, lost)[sums >> lost]
    return np.where(even, colours[:, :, :1], result).astype(colours.dtype)


def _powers(exponent: int, bits: int, lost: int) -> Array:
    """int64: each value of ``bits`` less ``lost`` bits to the power of an exponent in 100,000ths."""
    most = (1 << (bits - lost)) - 1
    top = (1 << bits) - 1
    table: Array = np.floor(top * (np.arange(most + 1) * (1 / most)) ** (exponent / UNIT) + 0.5).astype(np.int64)
    return table


def brightness(data: bytes, deep: bool) -> tuple[int, int]:
    """A file's gamma in 100,000ths, 100,000 where it says none before its palette, and the bits of 16 that libpng's
    tables leave out.

    Args:
        deep: whether 16 bits are kept.
    """
    found = _before(data, b"IDAT", b"PLTE")
    (own,) = struct.unpack(">I", found[b"gAMA"]) if len(found.get(b"gAMA", b"")) == 4 else (UNIT,)
    gamma = SRGB_GAMMA if len(found.get(b"sRGB", b"")) == 1 else own if own in GAMMAS else UNIT
    bits = found.get(b"sBIT", b"")
    significant = max(bits[:3]) if len(bits) == (4 if data[25] == 6 else 3) else 0
    lost = 16 - significant if 0 < significant < 16 else 0
    return gamma, min(lost if deep else max(lost, 5), 8)


def _before(data: bytes, *ends: bytes) -> dict[bytes, bytes]:
    """The parts of a file in front of the first of these kinds."""
    found: dict[bytes, bytes] = {}
    for kind, content in takewhile(lambda part: part[0] not in ends, _chunks(data)):
        found.setdefault(kind, content)
    return found


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kind and content of each part of a file."""
    place = 8
    while place + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        yield kind, data[place + 8 : place + 8 + size]
        place += size + 12


def encoded(pixels: Array, level: int = -1) -> bytes:
    """A PNG file of uint8 or uint16 (rows, columns, 1 to 4 channels); see https://www.w3.org/TR/png/.

    Args:
        level: zlib's, -1 for its default.
    """
    height, width, channels = pixels.shape
    size = pixels.dtype.itemsize
    lines = np.zeros((height, 1 + width * channels * size), np.uint8)  # each line begins with its filter, none
    lines[:, 1:] = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    colour = next(kind for kind, bands in BANDS.items() if bands == channels)
    header = struct.pack(">IIBBBBB", width, height, 8 * size, colour, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), level)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def wide_pixels(data: bytes) -> Array:
    """(rows, columns, values) uint16 of a file of 16 bits a value.

    Raises:
        ValueError: the data are cut short or damaged.
    """
    width, height, _, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    if colour not in BANDS:
        raise ValueError(f"colour type {colour} with 16 bits")
    bands = BANDS[colour]
    reserve((height, width, bands), np.uint16)
    parts = []
    for kind, content in _chunks(data):
        if kind == b"IDAT":
            parts.append(content)
        if kind == b"IEND":
            break
    passes = PASSES if interlaced else ((0, 0, 1, 1),)
    sizes = [(-(-(height - top) // down), -(-(width - left) // along)) for top, left, down, along in passes]
    wanted = sum(rows * (columns * bands * 2 + 1) for rows, columns in sizes if rows > 0 and columns > 0)
    raw = zlib.decompressobj().decompress(b"".join(parts), wanted)
    if len(raw) < wanted:
        raise ValueError(f"{len(raw)} bytes of pixels where {wanted} are wanted")
    result = np.zeros((height, width, bands), np.uint16)
    start = 0
    for (top, left, down, along), (rows, columns) in zip(passes, sizes, strict=True):
        if rows <= 0 or columns <= 0:
            continue
        length = columns * bands * 2
        lines = unfiltered(raw[start : start + rows * (length + 1)], rows, length, bands * 2)
        start += rows * (length + 1)
        result[top::down, left::along] = lines.view(">u2").reshape(rows, columns, bands)
    return result


def unfiltered(raw: bytes, rows: int, length: int, step: int) -> Array:
    """uint8 (rows, length): each line less its prediction from the pixel ``step`` bytes before and the line above.

    Raises:
        ValueError: an unknown filter.
    """
    result = np.zeros((rows, length), np.uint8)
    above = np.zeros(length, np.uint8)
    for row in timed(range(rows)):
        kind = raw[row * (length + 1)]
        line = np.frombuffer(raw, np.uint8, length, row * (length + 1) + 1)
        if kind == 0:
            found = line
        elif kind == 1:
            found = np.cumsum(line.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            found = line + above
        elif kind in (3, 4):
            found = _predicted(line.tolist(), above.tolist(), step, kind == 4)
        else:
            raise ValueError(f"the filter {kind}")
        result[row] = found
        above = result[row]
    return result


def _predicted(line: list[int], above: list[int], step: int, paeth: bool) -> Array:
    """A line of the Paeth filter, or of the one that takes the mean of left and above."""
    found = [0] * step + line
    before = [0] * step + above
    for place in range(step, len(found)):
        left, up = found[place - step], before[place]
        if paeth:
            corner = before[place - step]
            by_left, by_up, by_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            if by_left <= by_up and by_left <= by_corner:
                guess = left
            else:
                guess = up if by_up <= by_corner else corner
        else:
            guess = (left + up) >> 1
        found[place] = found[place] + guess & 255
    return np.array(found[step:], np.uint8)
