"""Photos distorted at random: as TensorFlow's retrain.py does, and as phones do when they take them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageFilter

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array

LEAST_FRAME, ASPECT = 0.4, 4 / 3
"""The least share of a photo's area that a frame shows, and how far its sides' ratio is from the photo's, at most."""
TILT, BULGE = 12.0, 0.3  # degrees; how much farther from the middle a lens puts the corners
EXPOSURE, GAMMA, TINT = 0.35, 0.25, 0.12  # logarithms, at most
BLUR, NOISE = 1.5, 10.0  # pixels of 224, standard deviation; levels of 255
WORST_QUALITY, BEST_QUALITY = 25, 90  # of JPEG
OFTEN, SELDOM = 0.5, 0.3
"""How often a photo is mirrored; how often it is blurred, gets noise, or is compressed."""
SIDE = 224  # pixels that blur is measured at


@dataclass(frozen=True)
class Distortions:
    """How photos are distorted before they train.

    Attributes:
        flip: mirror half of them.
        crop: how much of the margins is cut off, in per cent of the picture that is left.
        scale: how much larger they become at most, in per cent.
        brightness: by how much pixels are multiplied or divided at most, in per cent.
        phone: as phones take them: framing, tilt, lens, exposure, tint, blur, noise, JPEG.
    """

    flip: bool = False
    crop: float = 0
    scale: float = 0
    brightness: float = 0
    phone: bool = False

    def __bool__(self) -> bool:
        return bool(self.crop or self.scale or self.brightness or self.phone)

    def of(self, pixels: Array, height: int, width: int, rng: np.random.Generator) -> Array:
        """A distorted picture, uint8 [height, width, channels], of a photo, uint8 [rows, columns, channels]."""
        picture = self._framed(pixels, height, width, rng)
        if self.brightness:
            picture = picture * rng.uniform(1 - self.brightness / 100, 1 + self.brightness / 100)
        if self.phone:
            picture = _exposed(picture, rng)
        found = np.clip(np.rint(picture), 0, 255).astype(np.uint8)
        return _taken(found, rng) if self.phone else found

    def _framed(self, pixels: Array, height: int, width: int, rng: np.random.Generator) -> Array:
        """What the frame shows, read between the pixels as TensorFlow's ResizeBilinear reads; float32."""
        larger = (1 + self.crop / 100) * rng.uniform(1, 1 + self.scale / 100)
        down = across = 1 / larger
        angle = bulge = 0.0
        if self.phone:
            share, ratio = np.sqrt(rng.uniform(LEAST_FRAME, 1)), ASPECT ** rng.uniform(-0.5, 0.5)
            down, across = min(1.0, share * ratio) * down, min(1.0, share / ratio) * across
            angle, bulge = np.radians(rng.uniform(-TILT, TILT)), rng.uniform(0, BULGE)
        middle = rng.uniform(-1, 1) * (1 - down), rng.uniform(-1, 1) * (1 - across)
        mirrored = -1.0 if self.flip and rng.random() < OFTEN else 1.0
        y, x = np.meshgrid(_places(height), mirrored * _places(width), indexing="ij")
        if bulge:
            farther = (1 + bulge * (x * x + y * y) / 2) / (1 + bulge)
            y, x = y * farther, x * farther
        if angle:
            y, x = np.cos(angle) * y - np.sin(angle) * x, np.sin(angle) * y + np.cos(angle) * x
        rows, columns = pixels.shape[:2]
        return _read_between(
            pixels, (middle[0] + down * y + 1) * rows / 2 - 0.5, (middle[1] + across * x + 1) * columns / 2 - 0.5
        )


def _places(count: int) -> Array:
    """The middles of so many pixels, from -1 to 1."""
    return (2 * np.arange(count) + 1) / count - 1


def _read_between(pixels: Array, y: Array, x: Array) -> Array:
    """Bilinear at any places; what is outside is like the edge."""
    rows, columns = pixels.shape[:2]
    y, x = np.clip(y, 0, rows - 1), np.clip(x, 0, columns - 1)
    top, left = y.astype(np.int64), x.astype(np.int64)
    below, right = np.minimum(top + 1, rows - 1), np.minimum(left + 1, columns - 1)
    v, u = (y - top).astype(np.float32)[..., None], (x - left).astype(np.float32)[..., None]
    upper = pixels[top, left] * (1 - u) + pixels[top, right] * u
    lower = pixels[below, left] * (1 - u) + pixels[below, right] * u
    found: Array = upper * (1 - v) + lower * v
    return found


def _exposed(picture: Array, rng: np.random.Generator) -> Array:
    """Brighter or darker, harder or softer, warmer or colder."""
    gain = np.exp(rng.uniform(-EXPOSURE, EXPOSURE) + rng.uniform(-TINT, TINT, picture.shape[2]))
    found: Array = 255 * np.clip(picture / 255 * gain, 0, 1) ** np.exp(rng.uniform(-GAMMA, GAMMA))
    return found


def _taken(picture: Array, rng: np.random.Generator) -> Array:
    """Blurred, noisy, compressed, each now and then."""
    if rng.random() < SELDOM:
        radius = rng.uniform(0, BLUR) * max(picture.shape) / SIDE
        blurred = [
            Image.fromarray(part).filter(ImageFilter.GaussianBlur(radius)) for part in np.moveaxis(picture, 2, 0)
        ]
        picture = np.stack([np.asarray(part) for part in blurred], axis=2)
    if rng.random() < SELDOM:
        noisy = picture + rng.normal(0, rng.uniform(0, NOISE), picture.shape)
        picture = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    if rng.random() < SELDOM:
        file = io.BytesIO()
        quality = int(rng.integers(WORST_QUALITY, BEST_QUALITY))
        Image.fromarray(picture.squeeze(2) if picture.shape[2] == 1 else picture).save(file, "JPEG", quality=quality)
        picture = np.asarray(Image.open(file)).reshape(picture.shape)
    return picture
