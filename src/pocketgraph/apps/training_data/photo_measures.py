"""What can be measured of one photo without a model: content, likeness, size, light, sharpness, filled edges."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array

LONG_SIDE = 256  # pixels that sharpness is measured at, so that it does not depend on the camera's
HASHED = 32  # pixels a side, of which the lowest 8 x 8 frequencies are kept
FILL = 128
"""The gray that decoders leave where a file ends too early."""
BLACK, ALIKE = 8, 3  # levels of 255
BORDER, MOST_OF_A_ROW = 3, 0.75  # rows behind a filled edge, and how much of them is a picture


@dataclass(frozen=True)
class Measures:
    """Of one photo.

    Attributes:
        digest: of the file's bytes.
        width, height: in pixels.
        frequencies: int8 [64], -1 or 1: the signs of the perceptual hash; zeros where the photo has one colour.
        light: the brightness that 99 of 100 pixels stay below, 0 to 255.
        sharpness: variance of the Laplacian of the brightness, of the photo made ``LONG_SIDE`` long.
        filled: the share of rows or columns at an edge that are black or the decoder's gray.
    """

    digest: str
    width: int
    height: int
    frequencies: Array
    light: float
    sharpness: float
    filled: float


def measured(content: bytes, pixels: Array) -> Measures:
    """Measures a photo.

    Args:
        content: the file.
        pixels: what it decodes to, uint8 [height, width, 3].
    """
    height, width = pixels.shape[:2]
    gray = Image.fromarray(pixels).convert("L")
    scale = LONG_SIDE / max(width, height)
    if scale < 1:
        gray = gray.resize((max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BOX)
    small = np.asarray(gray.resize((HASHED, HASHED), Image.Resampling.BOX), np.float64)
    values = np.asarray(gray, np.float64)
    return Measures(
        hashlib.sha256(content).hexdigest(),
        width,
        height,
        perceptual_hash(small),
        float(np.percentile(values, 99)),
        laplacian_variance(values),
        filled_share(pixels),
    )


def perceptual_hash(gray: Array) -> Array:
    """Whether each of the lowest frequencies is above their median, as -1 and 1, int8 [64].

    The discrete cosine transform's 8 x 8 lowest without the mean (Zauner, "Implementation and Benchmarking of
    Perceptual Image Hash Functions", 2010, with the row and column of the mean left out). Photos of one colour have
    zeros, which are like nothing.

    Args:
        gray: [n, n].
    """
    if gray.std() < 1:
        return np.zeros(64, np.int8)
    waves = _cosines(len(gray))
    low = waves @ gray @ waves.T
    return np.where(low > np.median(low), 1, -1).astype(np.int8).reshape(-1)


def laplacian_variance(gray: Array) -> float:
    """How sharp a picture is: Pech-Pacheco et al., "Diatom autofocusing in brightfield microscopy" (2000)."""
    if min(gray.shape) < 3:
        return math.inf
    inner = gray[1:-1, 1:-1]
    edges = gray[:-2, 1:-1] + gray[2:, 1:-1] + gray[1:-1, :-2] + gray[1:-1, 2:] - 4 * inner
    return float(edges.var())


def filled_share(pixels: Array) -> float:
    """The largest share of rows or columns at one edge that are all black, or all the gray of a file cut short.

    They end in a straight border: behind it most pixels have another colour, else it is a dark background.
    """
    across = pixels.transpose(1, 0, 2)
    found = 0.0
    for side in (pixels, pixels[::-1], across, across[::-1]):
        for colour, near in ((0, BLACK), (FILL, ALIKE)):
            if np.abs(side[0].astype(np.int16) - colour).max(initial=0) > near:
                continue
            other: Array = np.any(np.abs(side.astype(np.int16) - colour) > near, axis=2)
            rows: Array = np.any(other, axis=1)
            first = int(np.argmax(rows))
            if rows.any() and other[first : first + BORDER].mean() >= MOST_OF_A_ROW:
                found = max(found, first / len(rows))
    return found


@lru_cache(maxsize=1)
def _cosines(size: int) -> Array:
    """Waves 1 to 8 of the cosine transform, [8, size]."""
    places = (np.arange(size) + 0.5) * math.pi / size
    return np.cos(np.arange(1, 9)[:, None] * places)
