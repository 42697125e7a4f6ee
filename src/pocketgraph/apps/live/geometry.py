"""Frames turned, mirrored, cropped and fitted, and how places in what came out lie in the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array


def center_square(pixels: Array) -> Array:
    """The middle of a frame, as high as wide; [height, width, channels]."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]


def turned(pixels: Array, degrees: int, mirrored: bool = False) -> Array:
    """A frame turned clockwise by a multiple of 90 degrees, then mirrored left to right."""
    found = np.rot90(pixels, -(degrees // 90) % 4)
    return np.ascontiguousarray(found[:, ::-1] if mirrored else found)


def from_yuv(y: Array, u: Array, v: Array) -> Array:
    """Red, green, blue of a camera's YUV 4:2:0 (BT.601, 16 to 235), in the integers of the Android demo.

    Args:
        y: uint8 [height, width].
        u, v: uint8 [half the height, half the width], rounded up; or of y's size.

    Returns:
        uint8 [height, width, 3].
    """
    height, width = y.shape
    if u.shape != y.shape:
        u = u.repeat(2, 0).repeat(2, 1)[:height, :width]
        v = v.repeat(2, 0).repeat(2, 1)[:height, :width]
    light = 1192 * np.maximum(y.astype(np.int32) - 16, 0)
    blue, red = u.astype(np.int32) - 128, v.astype(np.int32) - 128
    channels = np.stack([light + 1634 * red, light - 833 * red - 400 * blue, light + 2066 * blue], axis=-1)
    found: Array = (np.clip(channels, 0, 262143) >> 10).astype(np.uint8)
    return found


def resized_nearest(pixels: Array, height: int, width: int) -> Array:
    """A frame in another size; each pixel is the one that lies at its place, ``i * in // out``."""
    rows = np.arange(height) * pixels.shape[0] // height
    columns = np.arange(width) * pixels.shape[1] // width
    found: Array = pixels[rows[:, None], columns]
    return found
