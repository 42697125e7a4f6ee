"""A video of two things that pass each other, a detector that finds them, and what a page counted in the end."""

import io
import pathlib
from typing import Any

import numpy as np
from PIL import Image

from browsers import until

REDNESS = """
    x = Placeholder(dtype=float, shape=[1,48,64,3])
    w = Const(float [[[[1], [-0.5], [-0.5]]]])
    red = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
    near = AvgPool(red, T=float, ksize=[1,9,9,1], strides=[1,1,1,1], padding="SAME")
    half = Const(float 0.3)
    over = Sub(near, half, T=float)
    steep = Const(float 12)
    heat = Mul(over, steep, T=float)
    heatmap = Sigmoid(heat, T=float)
    zero = Const(float 0)
    none = Mul(near, zero, T=float)
    nine = Const(float [[[[9, 9]]]])
    size = Add(none, nine, T=float)
"""
"""The places of red things of 90 x 90 pixels, as heat map and sizes."""
SIDE, RATE = 90, 30
"""Pixels; frames a second, at which Chromium shows Motion JPEG."""


def moved_things(place: pathlib.Path) -> pathlib.Path:
    """Motion JPEG of 640 x 480: two things wait two seconds, pass each other in ten, and wait again."""
    rng = np.random.default_rng(0)
    thing = np.full((SIDE, SIDE, 3), (235, 20, 20), np.uint8)
    thing[rng.integers(0, SIDE, 200), rng.integers(0, SIDE, 200)] = (120, 10, 10)
    frames = []
    for share in [*np.zeros(2 * RATE), *np.linspace(0, 1, 10 * RATE), *np.ones(20 * RATE)]:
        picture = np.full((480, 640, 3), 110, np.uint8)
        for top, left in ((60, 60 + 430 * share), (320, 490 - 430 * share)):
            picture[top : top + SIDE, round(left) : round(left) + SIDE] = thing
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "JPEG", quality=80)
        frames.append(buffer.getvalue())
    place.write_bytes(b"".join(frames))
    return place


def crossings(page: Any) -> dict[str, str]:
    """The counts of a page when both things have crossed the line."""
    numbers = "Array.from(document.querySelectorAll('#numbers dt, #numbers dd'), (entry) => entry.textContent)"
    until(page, f"/inwards,1.*outwards,1/.test({numbers}.join())", 40)
    found = page.evaluate(numbers)
    told = dict(zip(found[::2], found[1::2], strict=True))
    return {
        "in sight": told["in sight"],
        "inwards": told["crossed the line inwards"],
        "outwards": told["crossed the line outwards"],
        "followed": told["followed so far"],
    }
