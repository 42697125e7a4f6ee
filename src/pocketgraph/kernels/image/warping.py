"""Pictures scaled and moved by real numbers, and warped by projective transforms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pocketgraph.kernels.arrays import Array, ints, reserve, widened
from pocketgraph.kernels.registry import kernel

FLOAT = np.float32
SMALLEST_SUM = 1000 * np.finfo(FLOAT).tiny
"""Weights whose sum is nearer to 0 than this stay as they are."""


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def weigh(x: Array) -> Array:
        x = np.abs(x)
        with np.errstate(all="ignore"):
            pi = FLOAT(math.pi)
            wave = FLOAT(radius) * np.sin(pi * x) * np.sin(pi * x / FLOAT(radius)) / (pi * pi * x * x)
        return np.asarray(np.where(x > FLOAT(radius), FLOAT(0), np.where(x <= FLOAT(1e-3), FLOAT(1), wave)))

    return weigh


def _gaussian(x: Array) -> Array:
    sigma = 1.5 / 3.0
    return np.asarray(np.where(np.abs(x) >= FLOAT(1.5), FLOAT(0), np.exp(-(x * x) / FLOAT(2 * sigma * sigma))))


def _box(x: Array) -> Array:
    x = np.abs(x)
    return np.asarray(np.where(x < FLOAT(0.5), FLOAT(1), np.where(x == FLOAT(0.5), FLOAT(0.5), FLOAT(0))))


def _triangle(x: Array) -> Array:
    return np.asarray(np.maximum(FLOAT(0), FLOAT(1) - np.abs(x)))


def _keys_cubic(x: Array) -> Array:
    x = np.abs(x)
    far = ((FLOAT(-0.5) * x + FLOAT(2.5)) * x - FLOAT(4)) * x + FLOAT(2)
    near = ((FLOAT(1.5) * x - FLOAT(2.5)) * x) * x + FLOAT(1)
    return np.asarray(np.where(x >= 2, FLOAT(0), np.where(x >= 1, far, near)))


def _mitchell_cubic(x: Array) -> Array:
    x = np.abs(x)
    far = ((FLOAT(-7 / 18) * x + 2) * x - FLOAT(10 / 3)) * x + FLOAT(16 / 9)
    near = ((FLOAT(7 / 6) * x - 2) * x) * x + FLOAT(8 / 9)
    return np.asarray(np.where(x >= 2, FLOAT(0), np.where(x >= 1, far, near)))


KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "lanczos1": (1.0, _lanczos(1.0)), "lanczos3": (3.0, _lanczos(3.0)), "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian), "box": (1.0, _box), "triangle": (1.0, _triangle),
    "keyscubic": (2.0, _keys_cubic), "mitchellcubic": (2.0, _mitchell_cubic),
}  # fmt: skip
"""By name: how far the kernel reaches, in pixels of the coarser picture, and its weight at a distance."""


def _weights(name: str, wanted: int, size: int, scale: float, moved: float, antialias: bool) -> tuple[Array, Array]:
    """float32 and bool (wanted, size): what each old pixel gives to each new one, and whether TensorFlow
    multiplies it at all (by 0 as well): as many pixels for each new one, from the first that counts."""
    if name not in KERNELS:
        raise ValueError(f"Unrecognized kernel type: {name}; known are {', '.join(KERNELS)}")
    radius, weigh = KERNELS[name]
    if not scale > 0 or not math.isfinite(scale):
        raise ValueError(f"scale must be greater than zero, not {scale}")
    back = FLOAT(1) / FLOAT(scale)
    stretch = np.maximum(back, FLOAT(1)) if antialias else FLOAT(1)
    places = (np.arange(wanted, dtype=FLOAT) + FLOAT(0.5)) * back + -back * FLOAT(moved)
    reserve((wanted, size), FLOAT)
    old = np.arange(size, dtype=FLOAT)
    reach = FLOAT(radius) * stretch
    first = np.clip(np.ceil(places - reach - FLOAT(0.5)), 0, size - 1)
    last = np.clip(np.floor(places + reach - FLOAT(0.5)), 0, size - 1)
    inside = (old >= first[:, None]) & (old <= last[:, None])
    found = np.where(inside, weigh(((old + FLOAT(0.5)) - places[:, None]) / stretch), FLOAT(0)).astype(FLOAT)
    sums = found.sum(axis=1, keepdims=True)
    found = np.where(np.abs(sums) >= SMALLEST_SUM, found * (FLOAT(1) / np.where(sums == 0, FLOAT(1), sums)), found)
    beyond = (places < 0) | (places > size)
    found[beyond] = 0
    start = np.where(beyond, 0, first)[:, None]
    return found, (old >= start) & (old < start + 2 * int(np.ceil(reach)) + 1)


def _weighted(pattern: str, weights: Array, inside: Array, x: Array) -> Array:
    """``np.einsum(pattern, weights, x)``, in which what is not finite counts only where the kernel reaches it."""
    bad = ~np.isfinite(x)
    if not bad.any():
        return np.asarray(np.einsum(pattern, weights, x, optimize=True))
    result = np.asarray(np.einsum(pattern, weights, np.where(bad, 0, x), optimize=True))

    def reached(where: Array, what: Array) -> Array:
        return np.asarray(np.einsum(pattern, (inside & where).astype(FLOAT), what.astype(FLOAT), optimize=True) > 0)

    gives, takes, neither = weights > 0, weights < 0, weights == 0
    for sign, same, other in ((np.inf, gives, takes), (-np.inf, takes, gives)):
        result[reached(same, x == np.inf) | reached(other, x == -np.inf)] += result.dtype.type(sign)
    result[reached(inside, np.isnan(x)) | reached(neither, np.isinf(x))] = np.nan
    return result


def axis_weights(
    kind: str, wanted: tuple[int, ...], sizes: tuple[int, ...], scale: Array, translation: Array, antialias: bool
) -> list[tuple[Array, Array]]:
    """``_weights`` of the rows and of the columns of pictures of these sizes."""
    if scale.shape != (2,) or translation.shape != (2,) or len(wanted) != 2:
        raise ValueError("size, scale and translation are two numbers each, for rows and columns")
    if min(*wanted, *sizes) < 1:
        raise ValueError(f"output dimensions must be positive: {list(wanted)} of {list(sizes)}")
    return [
        _weights(kind, w, s, float(f), float(t), antialias)
        for w, s, f, t in zip(wanted, sizes, scale, translation, strict=True)
    ]


@kernel("ScaleAndTranslate")
def scale_and_translate(
    images: Array, size: Array, scale: Array, translation: Array, *, kernel_type: str = "lanczos3",
    antialias: bool = True,
) -> Array:  # fmt: skip
    """float32 (n, rows, columns, channels) of images of any number type: pixel p comes to p * scale + translation."""
    down, along = axis_weights(kernel_type, ints(size), images.shape[1:3], scale, translation, antialias)
    reserve((images.shape[0], len(down[0]), len(along[0]), images.shape[3]), FLOAT)
    rows = _weighted("ph,nhwc->npwc", *down, widened(images).astype(FLOAT))
    return _weighted("qw,npwc->npqc", *along, rows).astype(FLOAT)


@kernel("ScaleAndTranslateGrad")
def scale_and_translate_grad(
    grads: Array, original_image: Array, scale: Array, translation: Array, *, kernel_type: str = "lanczos3",
    antialias: bool = True,
) -> Array:  # fmt: skip
    """The gradient of ScaleAndTranslate by its images."""
    if grads.shape[0] != original_image.shape[0]:
        raise ValueError(f"shapes that do not fit: {list(grads.shape)} and {list(original_image.shape)}")
    sizes = original_image.shape[1:3]
    both = axis_weights(kernel_type, grads.shape[1:3], sizes, scale, translation, antialias)
    (down, from_rows), (along, from_columns) = [(weights, _multiplied_back(weights)) for weights, _ in both]
    rows = _weighted("ph,npqc->nhqc", down, from_rows, grads)
    return _weighted("qw,nhqc->nhwc", along, from_columns, rows).astype(grads.dtype)


def _multiplied_back(weights: Array) -> Array:
    """bool (wanted, size): which new pixels TensorFlow multiplies for the gradient of each old one: as many for each,
    from the first that it gave anything to."""
    is_given = weights != 0
    first = is_given.argmax(axis=0)
    last = len(weights) - 1 - is_given[::-1].argmax(axis=0)
    most = int(np.where(is_given.any(axis=0), last - first + 1, 0).max())
    new = np.arange(len(weights))[:, None]
    return np.asarray((new >= first) & (new < first + most))


def _folded(places: Array, size: int, mode: str) -> Array:
    """Places outside an axis brought into it; with CONSTANT left where they are."""
    if mode == "CONSTANT":
        return places
    if size <= 1:
        return np.zeros_like(places)
    last = FLOAT(size - 1)
    if mode == "REFLECT":  # dcba|abcd|dcba
        whole = FLOAT(2 * size)
        low = np.where(places < whole, whole * np.trunc(-places / whole) + places, places)
        low = np.where(low < -size, low + whole, -low - 1)
        high = places - whole * np.trunc(places / whole)
        high = np.where(high >= size, whole - high - 1, high)
    elif mode == "WRAP":
        low = places + size * (np.trunc(-places / last) + 1)
        high = places - size * np.trunc(places / last)
    elif mode == "NEAREST":
        low = high = places
    else:
        raise ValueError(f"Invalid mode {mode}; known are REFLECT, WRAP, CONSTANT, NEAREST")
    return np.clip(np.where(places < 0, low, np.where(places > last, high, places)), FLOAT(0), last).astype(FLOAT)


def _away_from_zero(x: Array) -> Array:
    return np.asarray(np.where(x < 0, -np.floor(-x + FLOAT(0.5)), np.floor(x + FLOAT(0.5))))


@kernel("ImageProjectiveTransform")
def image_projective_transform_v1(images: Array, transforms: Array, *, interpolation: str) -> Array:
    """The pictures' size stays."""
    return _projected(images, transforms, images.shape[1:3], interpolation, "CONSTANT", 0.0)


@kernel("ImageProjectiveTransformV2", "Addons>ImageProjectiveTransformV2")
def image_projective_transform(
    images: Array, transforms: Array, output_shape: Array, *, interpolation: str, fill_mode: str = "CONSTANT"
) -> Array:
    return _projected(images, transforms, ints(output_shape), interpolation, fill_mode, 0.0)


@kernel("ImageProjectiveTransformV3")
def image_projective_transform_v3(
    images: Array, transforms: Array, output_shape: Array, fill_value: Array, *, interpolation: str,
    fill_mode: str = "CONSTANT",
) -> Array:  # fmt: skip
    return _projected(images, transforms, ints(output_shape), interpolation, fill_mode, float(fill_value))


def _projected(
    images: Array, transforms: Array, wanted: tuple[int, ...], interpolation: str, mode: str, fill: float
) -> Array:
    """(n, *wanted, channels) in the type of ``images`` (n, rows, columns, channels): the output pixel (x, y) is taken
    from ((a x + b y + c) / k, (d x + e y + f) / k) with k = g x + h y + 1, for transforms (n or 1, 8) of a…h."""
    if images.ndim != 4 or len(wanted) != 2:
        raise ValueError(f"images of shape {list(images.shape)} to the size {list(wanted)}")
    count, height, width, depth = images.shape
    if transforms.ndim != 2 or transforms.shape[1] != 8 or transforms.shape[0] not in (1, count):
        raise ValueError(f"Input transform should be num_images x 8 or 1 x 8, not {list(transforms.shape)}")
    kind, method = images.dtype, interpolation.upper()
    result = np.empty(reserve((count, *wanted, depth), np.float64), kind)
    y, x = (axis.astype(FLOAT) for axis in np.meshgrid(*(np.arange(size) for size in wanted), indexing="ij"))
    filled = np.asarray(fill).astype(kind)
    for number in range(count):
        a, b, c, d, e, f, g, h = transforms[number if transforms.shape[0] > 1 else 0].astype(FLOAT)
        below = g * x + h * y + FLOAT(1)
        columns = _folded(((a * x + b * y + c) / below).astype(FLOAT), width, mode)
        rows = _folded(((d * x + e * y + f) / below).astype(FLOAT), height, mode)
        found = _interpolated(images[number], rows, columns, method, filled)
        result[number] = np.where((below == 0)[..., None], filled, found)
    return result


def _interpolated(image: Array, rows: Array, columns: Array, method: str, fill: Array) -> Array:
    height, width = image.shape[:2]

    def read(row: Array, column: Array) -> Array:
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        down, along = (np.where(inside, place, 0).astype(np.int64) for place in (row, column))
        if not image.size:
            return np.full((*row.shape, image.shape[2]), fill, image.dtype)
        return np.where(inside[..., None], image[down, along], fill)

    if method == "NEAREST":
        return read(_away_from_zero(rows), _away_from_zero(columns))
    if method != "BILINEAR":
        raise ValueError(f"Invalid interpolation {method}. Supported types: NEAREST, BILINEAR")
    top, left = np.floor(rows), np.floor(columns)
    bottom, right = top + 1, left + 1

    def between(row: Array) -> Array:
        before, after = (read(row, column).astype(FLOAT) for column in (left, right))
        return (right - columns)[..., None] * before + (columns - left)[..., None] * after

    # doubles as well: TensorFlow has them in float32
    mixed = (bottom - rows)[..., None] * between(top) + (rows - top)[..., None] * between(bottom)
    return np.asarray(mixed.astype(image.dtype))
