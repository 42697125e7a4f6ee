"""Boxes that a detector's outputs are relative to: read from a file, or made as SSD's are."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.errors import FormatError

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array

MOST_BYTES = 1 << 26  # of a file of anchors
SSD_LAYERS, SSD_RATIOS = 6, (1.0, 2.0, 0.5, 3.0, 1 / 3)


def read_numbers(path: str | os.PathLike[str]) -> Array:
    """The numbers of a text file, float64, whatever stands between them; an .npy file's array as it is.

    Words that are no numbers are skipped, as the Android demo does.

    Raises:
        FormatError: it cannot be read, or holds none.
    """
    place = os.fspath(path)
    try:
        with open(place, "rb") as file:
            if place.endswith(".npy"):
                return np.asarray(np.load(file, allow_pickle=False), np.float64)
            data = file.read(MOST_BYTES + 1)
    except Exception as error:  # NumPy answers a damaged file with exceptions of many kinds
        raise FormatError(f"the boxes cannot be read: {error}", where=place) from None
    if len(data) > MOST_BYTES:
        raise FormatError(f"the file has over {MOST_BYTES:,} bytes, too many for boxes", where=place)
    found = []
    for word in re.split(rb"[\s,;]+", data):
        try:
            found.append(float(word))
        except ValueError:
            continue
    if not found:
        raise FormatError("there are no numbers in this file", where=place)
    return np.array(found)


def multibox_priors(path: str | os.PathLike[str], boxes: int) -> Array:
    """The priors of a MultiBox model: mean and standard deviation of left, top, right, bottom.

    Returns:
        float64 [boxes, 4, 2].

    Raises:
        FormatError: the file has not 8 numbers a box.
    """
    found = read_numbers(path)
    if found.size != 8 * boxes:
        raise FormatError(f"BoxPrior length mismatch: {found.size} vs {8 * boxes}", where=os.fspath(path))
    return found.reshape(boxes, 4, 2)


def ssd_anchors(boxes: int, size: int) -> Array | None:
    """The anchors of SSD MobileNet as the Object Detection API makes them; None where that gives another number.

    Six grids (stride 16, then halved), scales from 0.2 to 0.95 in even steps, aspect ratios 1, 2, 1/2, 3, 1/3 and a
    further square between two scales; three on the first grid, its square of scale 0.1 (Liu et al., "SSD").

    Returns:
        float64 [boxes, 4] of center y, center x, height, width, as shares.
    """
    scales = [0.2 + 0.75 * i / (SSD_LAYERS - 1) for i in range(SSD_LAYERS)] + [1.0]
    found = []
    cells = -(-size // 16)
    for layer in range(SSD_LAYERS):
        if layer == 0:
            shapes = [(0.1, 1.0), (scales[0], 2.0), (scales[0], 0.5)]
        else:
            shapes = [(scales[layer], ratio) for ratio in SSD_RATIOS]
            shapes.append(((scales[layer] * scales[layer + 1]) ** 0.5, 1.0))
        for y in range(cells):
            for x in range(cells):
                for scale, ratio in shapes:
                    found.append(((y + 0.5) / cells, (x + 0.5) / cells, scale / ratio**0.5, scale * ratio**0.5))
        cells = -(-cells // 2)
    return np.array(found) if len(found) == boxes else None
