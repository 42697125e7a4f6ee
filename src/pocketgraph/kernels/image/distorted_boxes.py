"""Crops for training pictures: boxes of random size, shape and place that show enough of an object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, ints, number
from pocketgraph.kernels.philox import Words
from pocketgraph.kernels.random.sampling import drawing, stateless
from pocketgraph.kernels.registry import Context, kernel

MOST_ATTEMPTS = 1 << 20  # draws of a box
ALL = 2**32

Box = tuple[int, int, int, int]
"""(top, left, bottom, right) in pixels."""


class _CropNumbers(Words):
    """The numbers that crops are drawn by."""

    def below(self, count: int) -> int:
        """A number in [0, count), all of them alike: words that would favour the small ones are passed over."""
        if count & (count - 1) == 0:
            return self.word() & (count - 1)
        while True:
            word = self.word()
            if word < ALL - ALL % count:
                return word % count

    def fraction(self) -> float:
        """A float32 number in [0, 1)."""
        bits = np.uint32((self.word() & 0x7FFFFF) | (127 << 23))
        return float(bits.view(np.float32) - np.float32(1))


@dataclass(frozen=True)
class _Wish:
    """What a crop should be like.

    Attributes:
        aspects: the least and the largest width divided by height.
        areas: the least and the largest share of the picture.
        covered: the share of at least one object that it must show.
        attempts: how often one is drawn before the whole picture is taken.
    """

    aspects: tuple[float, float]
    areas: tuple[float, float]
    covered: float
    attempts: int

    def check(self) -> None:
        if self.covered < 0:
            raise RunError(f"Min object covered must be non-negative: {self.covered}")
        if not 0 < self.aspects[0] <= self.aspects[1]:
            raise RunError(f"Aspect ratio range must rise from above 0: {list(self.aspects)}")
        if not 0 < self.areas[0] <= self.areas[1] <= 1:
            raise RunError(f"Area range must rise within (0, 1]: {list(self.areas)}")
        if not 0 < self.attempts <= MOST_ATTEMPTS:
            raise RunError(f"max_attempts must be 1 to {MOST_ATTEMPTS}, not {self.attempts}")


def _nearest(value: float) -> int:
    return int(np.rint(value))


def _crop(words: _CropNumbers, height: int, width: int, wish: _Wish) -> Box | None:
    """A random crop; None when rounding to pixels leaves none of this shape."""
    low, high = wish.aspects
    aspect = float(np.float32(words.fraction()) * np.float32(high - low) + np.float32(low))
    least, most = (float(np.float32(share) * np.float32(width) * np.float32(height)) for share in wish.areas)
    rows, limit = _nearest(np.sqrt(least / aspect)), _nearest(np.sqrt(most / aspect))
    if _nearest(limit * aspect) > width:
        limit = int((width + 0.5 - 1e-7) / aspect)
        limit -= _nearest(limit * aspect) > width
    limit = min(limit, height)
    rows = min(rows, limit)
    if rows < limit:
        rows += words.below(limit - rows + 1)
    columns = _nearest(rows * aspect)
    if rows * columns < least:
        rows += 1
        columns = _nearest(rows * aspect)
    if rows * columns > most:
        rows -= 1
        columns = _nearest(rows * aspect)
    if not (least <= rows * columns <= most and 0 < columns <= width and 0 < rows <= height):
        return None
    top = words.below(height - rows) if rows < height else 0
    left = words.below(width - columns) if columns < width else 0
    return top, left, top + rows, left + columns


def _shows_enough(crop: Box, objects: Sequence[Box], covered: float) -> bool:
    """Whether a crop of a pixel or more shows this share of one of the objects."""
    if (crop[2] - crop[0]) * (crop[3] - crop[1]) < 1:
        return False
    for top, left, bottom, right in objects:
        area = (bottom - top) * (right - left)
        if area < 1:
            continue
        rows = min(bottom, crop[2]) - max(top, crop[0])
        columns = min(right, crop[3]) - max(left, crop[1])
        if max(rows, 0) * max(columns, 0) / area >= covered:
            return True
    return False


def _sampled(
    words: _CropNumbers, image_size: Array, bounding_boxes: Array, wish: _Wish, use_image: bool
) -> tuple[Array, Array, Array]:
    """(begin, size, box [1, 1, 4] in shares of the picture) of one crop.

    Raises:
        RunError: the picture's size, a box, or what is wished for makes no sense.
    """
    wish.check()
    if image_size.shape != (3,):
        raise RunError(f"image_size must be 1-D and contain 3 elements, not of shape {list(image_size.shape)}")
    height, width = ints(image_size)[:2]
    if height <= 0 or width <= 0:
        raise RunError(f"Image height and width must be positive, not {height} and {width}")
    if bounding_boxes.ndim != 3 or bounding_boxes.shape[-1] != 4:
        raise RunError(
            f"input boxes must be 3-dimensional [batch, num_boxes, coords], not {list(bounding_boxes.shape)}"
        )
    boxes = bounding_boxes.reshape(-1, 4)
    if not (np.isfinite(boxes).all() and (boxes >= 0).all() and (boxes <= 1).all()):
        raise RunError("All bounding box coordinates must be in [0.0, 1.0]")
    scale = np.array([height, width, height, width], np.float32)
    objects: list[Box] = [(box[0], box[1], box[2], box[3]) for box in (boxes * scale).astype(np.int64).tolist()]
    if not objects:
        if not use_image:
            raise RunError(
                "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to "
                "not provide any bounding boxes."
            )
        objects = [(0, 0, height, width)]
    for _ in range(wish.attempts):
        crop = _crop(words, height, width, wish)
        if crop is not None and _shows_enough(crop, objects, wish.covered):
            break
    else:
        crop = (0, 0, height, width)
    top, left, bottom, right = crop
    begin = np.array([top, left, 0], image_size.dtype)
    size = np.array([bottom - top, right - left, -1], np.int64).astype(image_size.dtype)
    return begin, size, (np.array(crop, np.float32) / scale).reshape(1, 1, 4)


@kernel("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def sample_distorted_bounding_box(
    image_size: Array,
    bounding_boxes: Array,
    *covered: Array,
    context: Context,
    seed: int = 0,
    seed2: int = 0,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Sequence[float] = (0.75, 1.3300000429153442),
    area_range: Sequence[float] = (0.05000000074505806, 1.0),
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
) -> tuple[Array, Array, Array]:
    """See ``_sampled``; with a seed, TensorFlow's own crops. ``min_object_covered`` is an input of the second form."""
    least = _scalar(covered[0]) if covered else min_object_covered
    wish = _wish(aspect_ratio_range, area_range, least, max_attempts)
    words = _CropNumbers(drawing(context, seed, seed2, max(max_attempts, 1)))
    return _sampled(words, image_size, bounding_boxes, wish, use_image_if_no_bounding_boxes)


@kernel("StatelessSampleDistortedBoundingBox")
def stateless_sample_distorted_bounding_box(
    image_size: Array,
    bounding_boxes: Array,
    min_object_covered: Array,
    seed: Array,
    *,
    aspect_ratio_range: Sequence[float] = (0.75, 1.3300000429153442),
    area_range: Sequence[float] = (0.05000000074505806, 1.0),
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
) -> tuple[Array, Array, Array]:
    if seed.shape != (2,):
        raise RunError(f"seed must have shape [2], not {list(seed.shape)}")
    wish = _wish(aspect_ratio_range, area_range, _scalar(min_object_covered), max_attempts)
    return _sampled(_CropNumbers(stateless(seed)), image_size, bounding_boxes, wish, use_image_if_no_bounding_boxes)


def _scalar(min_object_covered: Array) -> float:
    if min_object_covered.ndim:
        raise RunError(f"min_object_covered must be 0-D, not of shape {list(min_object_covered.shape)}")
    return number(min_object_covered)


def _wish(aspects: Sequence[float], areas: Sequence[float], covered: float, attempts: int) -> _Wish:
    if len(aspects) != 2 or len(areas) != 2:
        raise RunError(f"ranges have two ends, not {list(aspects)} and {list(areas)}")
    return _Wish((aspects[0], aspects[1]), (areas[0], areas[1]), covered, attempts)
