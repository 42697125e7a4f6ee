"""ExtractGlimpse: a window of each image at its own place, noise where the window leaves the image."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, ints, reserve
from pocketgraph.kernels.registry import Context, kernel


def _corners(
    op: str, offsets: Array, whole: tuple[int, int], window: tuple[int, int], centered: bool, normalized: bool
) -> Array:
    """float32 (images, 2): the row and the column of each window's first pixel, not yet cut to integers.

    The first version of the op puts the middle of the window at the offset even when it is not centered; the second
    puts its corner at an offset from the image's middle when that is in pixels.
    """
    place: Array = offsets.astype(np.float32)
    size, half = np.array(whole, np.float32), np.array(window, np.float32) / np.float32(2)
    if op == "ExtractGlimpse":
        place = place * size if normalized else place
        return np.asarray(((place + size) / 2 if centered else place) - half)
    if centered:
        return np.asarray((place * size + size) / 2 - half if normalized else place + size / 2)
    return np.asarray(place * size if normalized else place)


def _background(image: Array, shape: tuple[int, ...], noise: str, rng: np.random.Generator) -> Array:
    """What lies outside: numbers of the image's own range or spread, or zeros."""
    if noise == "zero":
        return np.zeros(shape, image.dtype)
    if noise == "gaussian":
        return np.asarray(rng.standard_normal(shape) * image.std() + image.mean(), image.dtype)
    if noise == "uniform":
        return np.asarray(rng.random(shape) * (image.max() - image.min()) + image.min(), image.dtype)
    raise ValueError(f"noise could only be uniform, gaussian, or zero, not '{noise}'")


def _glimpses(input: Array, size: Array, corners: Array, noise: str, context: Context) -> Array:
    height, width = ints(size)
    if height < 1 or width < 1:
        raise ValueError(f"a window of {height} x {width}")
    rng = context.rng or np.random.default_rng(0)
    shape = (height, width, input.shape[-1])
    result = np.empty(reserve((input.shape[0], *shape), input.dtype), dtype=input.dtype)
    for image, (row, column), glimpse in zip(input, np.trunc(corners).astype(np.int64).tolist(), result, strict=True):
        top, left = max(row, 0), max(column, 0)
        bottom, right = min(row + height, image.shape[0]), min(column + width, image.shape[1])
        if (bottom - top, right - left) != (height, width):
            glimpse[:] = _background(image, shape, noise, rng)
        if bottom > top and right > left:
            glimpse[top - row : bottom - row, left - column : right - column] = image[top:bottom, left:right]
    return result


def _checked(input: Array, size: Array, offsets: Array) -> None:
    if input.ndim != 4 or size.shape != (2,) or offsets.shape != (input.shape[0], 2):
        raise ValueError(f"input {list(input.shape)}, size {list(size.shape)}, offsets {list(offsets.shape)}")


def _kind(uniform_noise: bool, noise: str) -> str:
    return "uniform" if uniform_noise and noise == "uniform" else "gaussian" if noise == "uniform" else noise


@kernel("ExtractGlimpse", "ExtractGlimpseV2")
def extract_glimpse(
    input: Array,
    size: Array,
    offsets: Array,
    *,
    context: Context,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    noise: str = "uniform",
) -> Array:
    """float32 (images, rows, columns, channels): the window of ``size`` at ``offsets`` (y, x) of each image.

    Args:
        centered: offsets are counted from the middle of the image, 1 or -1 being its borders.
        normalized: offsets are fractions of the image's size.
        noise: what fills a window outside the image: ``uniform`` or ``gaussian`` numbers of the image's own range or
            spread (the session's own generator; TensorFlow's are others from run to run), or ``zero``.
    """
    _checked(input, size, offsets)
    rows, columns = ints(size)
    corners = _corners(
        context.node.op, offsets, (input.shape[1], input.shape[2]), (rows, columns), centered, normalized
    )
    return _glimpses(input, size, corners, _kind(uniform_noise, noise), context)
