"""An answer drawn into its frame: boxes, skeletons, the best classes."""

from __future__ import annotations

import contextlib
import functools
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.apps.live.answers import Answer
from pocketgraph.graph.tensor import Array

if TYPE_CHECKING:
    from PIL import ImageDraw

COLOURS = (
    (66, 133, 244), (219, 68, 55), (244, 180, 0), (15, 157, 88), (171, 71, 188), (0, 172, 193), (255, 112, 67),
    (158, 157, 36), (92, 107, 192), (240, 98, 146), (0, 121, 107), (194, 24, 91),
)  # fmt: skip
MOST_LINES = 5  # classes that are drawn
FONTS = (
    "DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "arial.ttf", "Arial.ttf",
    "Arial Unicode.ttf", "NotoSansCJK-Regular.ttc", "msyh.ttc", "PingFang.ttc",
)  # fmt: skip
"""Of Linux, Windows and macOS, for letters that Pillow's own font does not have: it has those of ASCII."""


def annotated(pixels: Array, answer: Answer) -> Array:
    """A frame with what was found in it; where the answer is a picture, that one, as wide to its height as the frame.

    Args:
        pixels: uint8 [height, width, 3].

    Returns:
        uint8 [height, width, 3].
    """
    from PIL import Image, ImageDraw

    image = Image.fromarray(np.ascontiguousarray(pixels if answer.picture is None else answer.picture))
    down, across = image.height / pixels.shape[0], image.width / pixels.shape[1]
    longer = min(max(down, across), max(1, 2 * min(down, across)))  # a strip stays as it is, and becomes no wall
    image = image.resize((round(longer * pixels.shape[1]), round(longer * pixels.shape[0])))
    draw = ImageDraw.Draw(image)
    width, height = image.size
    stroke = max(2, min(width, height) // 160)
    size = max(10, min(width, height) // 24)
    for x0, y0, x1, y1 in answer.lines:
        draw.line([(x0 * width, y0 * height), (x1 * width, y1 * height)], fill=COLOURS[3], width=stroke)
    for number, entry in enumerate(answer.detections):
        colour = COLOURS[((entry.identity or number + 1) - 1) % len(COLOURS)]
        top, left, bottom, right = entry.box
        sides = [left * width, top * height, max(left, right) * width, max(top, bottom) * height]
        draw.rounded_rectangle(
            sides, radius=min(sides[2] - sides[0], sides[3] - sides[1]) / 8, outline=colour, width=stroke
        )
        for x, y in entry.points:
            draw.ellipse(
                [x * width - stroke, y * height - stroke, x * width + stroke, y * height + stroke], fill=colour
            )
        name = " ".join(
            filter(None, (f"#{entry.identity}" if entry.identity else "", entry.label, f"{entry.score:.2f}"))
        )
        _text(draw, (sides[0], max(0.0, sides[1] - size - 4)), name, size, colour)
    for row, (label, score) in enumerate(answer.classes[:MOST_LINES]):
        _text(draw, (4, 4 + row * (size + 6)), f"{label}: {score:.2f}", size, COLOURS[0])
    return np.asarray(image)


def _text(
    draw: ImageDraw.ImageDraw, place: tuple[float, float], text: str, size: int, colour: tuple[int, int, int]
) -> None:
    text = unicodedata.normalize("NFC", text)  # names of folders on macOS have their accents apart
    font = _font("".join(letter for letter in text if not letter.isascii()), size)
    left, top, right, bottom = draw.textbbox(place, text, font=font)
    draw.rectangle([left - 2, top - 2, right + 2, bottom + 2], fill=colour)
    draw.text(place, text, fill=(255, 255, 255), font=font)


@functools.lru_cache(maxsize=64)
def _font(letters: str, size: int) -> Any:
    """The first font of the system that has all of these letters, or Pillow's own."""
    from PIL import ImageFont

    for name in FONTS if letters else ():
        with contextlib.suppress(OSError):
            font = ImageFont.truetype(name, size)
            missing = bytes(font.getmask("\uffff"))
            if all(bytes(font.getmask(letter)) != missing for letter in letters):
                return font
    return ImageFont.load_default(size)
