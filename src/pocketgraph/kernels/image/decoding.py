"""Pictures in files: JPEG, PNG, GIF, BMP and WebP decoded to arrays of bytes."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import UINT8
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.image.png import as_channels, png_pixels
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.text.strings import scalar_string

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


MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's name for a number of channels."""
KINDS = ("JPEG", "PNG", "GIF", "BMP")


def opened(contents: Array, kinds: tuple[str, ...]) -> Any:
    """The picture, its pixels not read yet.

    Raises:
        RunError: the bytes are no picture of these kinds, or its size is beyond what may be allocated.
    """
    from PIL import Image, UnidentifiedImageError

    data = scalar_string(contents)
    try:
        picture = Image.open(io.BytesIO(data), formats=kinds)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise RunError(f"Unknown image file format. One of {', '.join(kinds)} required") from error
    reserve((*picture.size, 4), np.uint8)
    return picture


def pixels(picture: Any, channels: int) -> Array:
    """(rows, columns, channels); 0 channels keeps what the file has."""
    if channels not in (0, 1, 3, 4):
        raise RunError(f"channels must be 0, 1, 3 or 4, got {channels}")
    if channels == 0:
        bands = len(picture.getbands())
        channels = 3 if picture.mode in ("P", "CMYK", "YCbCr") else 1 if bands == 1 else 4 if bands in (2, 4) else 3
    try:
        array = np.asarray(picture.convert(MODES[channels]))
    except (OSError, ValueError, SyntaxError) as error:
        raise RunError(f"Invalid image data: {error}") from error
    return np.array(array.reshape(*array.shape[:2], channels), dtype=np.uint8)


@kernel("DecodeJpeg")
def decode_jpeg(contents: Array, *, channels: int = 0, ratio: int = 1) -> Array:
    """A picture, made smaller by ``ratio`` (1, 2, 4 or 8) while decoding; other kinds than JPEG are taken too."""
    if ratio not in (1, 2, 4, 8):
        raise RunError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    picture = opened(contents, KINDS)
    if picture.format == "JPEG" and (ratio > 1 or channels == 1):
        sizes = tuple(side / ratio for side in picture.size)  # by which Pillow divides, to find the ratio
        picture.draft("L" if channels == 1 else None, sizes)
    return _still(contents, picture, channels, UINT8)


def _deep(array: Array, dtype: DType) -> Array:
    if dtype is UINT8:
        return array
    if dtype.name == "uint16":
        return np.asarray(array.astype(np.uint16) * np.uint16(256))
    return np.asarray((array * np.float32(1 / 255)).astype(dtype.numpy))


@kernel("DecodePng")
def decode_png(contents: Array, *, channels: int = 0, dtype: DType = UINT8) -> Array:
    return _still(contents, opened(contents, KINDS), channels, dtype)


def _still(contents: Array, picture: Any, channels: int, dtype: DType) -> Array:
    if picture.format == "BMP":
        return _deep(_bmp(contents, picture, channels), dtype)
    if picture.format != "PNG" or channels not in (0, 1, 3, 4):
        return _deep(pixels(picture, channels), dtype)
    found = png_pixels(scalar_string(contents), picture, channels, dtype is not UINT8)
    return found if dtype is UINT8 or dtype.name == "uint16" else (found * np.float32(1 / 65535)).astype(dtype.numpy)


@kernel("DecodeBmp")
def decode_bmp(contents: Array, *, channels: int = 0) -> Array:
    return _bmp(contents, opened(contents, ("BMP",)), channels)


def _bmp(contents: Array, picture: Any, channels: int) -> Array:
    found = bmp_pixels(scalar_string(contents), picture.size, channels)
    return pixels(picture, channels) if found is None else found


def gif_pixels(picture: Any) -> Array:
    """(rows, columns, 3) of the frame of a GIF that Pillow is at; black where no frame has drawn yet."""
    drawn = np.array(picture.convert("RGBA"))
    drawn[drawn[..., 3] == 0] = 0
    return drawn[..., :3]


def _frames(picture: Any, most: int, channels: int = 3) -> Array:
    found, is_gif = [], picture.format == "GIF"
    try:
        count = min(getattr(picture, "n_frames", 1), most)
        reserve((count, *picture.size, channels), np.uint8)
        for number in range(count):
            if is_gif:
                picture.dispose = None  # frames stay below the next ones, whatever the file says
            picture.seek(number)
            found.append(gif_pixels(picture) if is_gif else pixels(picture, channels))
    except (
        IndexError,
        TypeError,
        struct.error,
    ) as error:  # what Pillow says of a file that ends within a frame's header
        raise RunError("Invalid image data: the file is cut short") from error
    except (EOFError, OSError, ValueError) as error:
        raise RunError(f"Invalid image data: {error}") from error
    return np.stack(found)


@kernel("DecodeGif")
def decode_gif(contents: Array) -> Array:
    """(frames, rows, columns, 3); PNG and JPEG files have one frame."""
    picture = opened(contents, ("GIF", "PNG", "JPEG"))
    return _frames(picture, 1 << 20) if picture.format == "GIF" else _still(contents, picture, 3, UINT8)[None]


@kernel("DecodeImage")
def decode_image(contents: Array, *, channels: int = 0, dtype: DType = UINT8, expand_animations: bool = True) -> Array:
    picture = opened(contents, (*KINDS, "WEBP"))
    if picture.format in ("GIF", "WEBP"):
        most = 1 << 20 if expand_animations else 1
        if picture.format == "WEBP" and dtype != UINT8:
            raise RunError(f"WebP only supports uint8, not {dtype.name}")
        frames = _frames(picture, most) if picture.format == "GIF" else decode_webp(contents, channels=channels)[:most]
        return _deep(frames if expand_animations else frames[0], dtype)
    return _still(contents, picture, channels, dtype)


@kernel("DecodeWebP")
def decode_webp(contents: Array, *, channels: int = 0) -> Array:
    """(frames, rows, columns, 3, or 4 when the file has transparency).

    Raises:
        RunError: no WebP file, or another number of channels than the file has (an animation may be asked for 4).
    """
    if channels not in (0, 3, 4):
        raise RunError(f"WebP only supports 3 or 4 channels, not {channels}")
    picture = opened(contents, ("WEBP",))
    held = len(picture.getbands())
    is_moving = getattr(picture, "n_frames", 1) > 1
    if channels and channels != (4 if is_moving else held):
        raise RunError(
            f"Number of channels requested, {channels}, does not match the file's {4 if is_moving else held}"
        )
    return _frames(picture, 1 << 20, channels or held)
