"""Colours of images: RGB and HSV, contrast, hue, saturation."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, number, widened
from pocketgraph.kernels.registry import kernel


def _rgb(images: Array) -> Array:
    if images.ndim < 1 or images.shape[-1] != 3:
        raise ValueError(f"the last dimension must be 3 colours, the shape is {list(images.shape)}")
    return images


@kernel("RGBToHSV")
def rgb_to_hsv(images: Array) -> Array:
    """Hue, saturation and value, each in [0, 1]; every step is rounded to the type of the images, 16 bits too."""
    rgb = _rgb(images)
    kind = images.dtype.type
    one, third = kind(1), kind(2 / 6)
    red, green, blue = (rgb[..., i] for i in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    span = value - np.minimum(np.minimum(red, green), blue)
    saturation = np.where(value > 0, span / value, kind(0))
    sixth = np.where(span > 0, one / (kind(6) * span), kind(0))
    hue = np.where(
        red == value,
        sixth * (green - blue),
        np.where(green == value, sixth * (blue - red) + third, sixth * (red - green) + kind(4 / 6)),
    )
    hue = np.where(span > 0, np.where(hue < 0, hue + one, hue), kind(0))
    return np.stack([hue, saturation, value], axis=-1).astype(images.dtype)


@kernel("HSVToRGB")
def hsv_to_rgb(images: Array) -> Array:
    """The other way, rounded at every step likewise."""
    hsv = _rgb(images)
    hue, saturation, value = (hsv[..., i] for i in range(3))
    one, two, three, four, six = (images.dtype.type(n) for n in (1, 2, 3, 4, 6))
    distance = hue * six
    channels = (np.abs(distance - three) - one, two - np.abs(distance - two), two - np.abs(distance - four))
    full = [np.minimum(np.maximum(c, images.dtype.type(0)), one) for c in channels]
    mixed = [(one - saturation + saturation * c) * value for c in full]
    return np.stack(mixed, axis=-1).astype(images.dtype)


def _check_images(images: Array) -> None:
    if images.ndim < 3:
        raise ValueError(f"input must be at least 3-D, got shape {list(images.shape)}")


@kernel("AdjustContrastv2")
def adjust_contrast(images: Array, contrast_factor: Array) -> Array:
    """Each channel of each image drawn away from its mean."""
    _check_images(images)
    if not images.size:
        return np.asarray(images.copy())
    wide = widened(images)
    mean = wide.mean(axis=(-3, -2), keepdims=True, dtype=np.float64).astype(wide.dtype)
    return np.asarray((wide - mean) * wide.dtype.type(number(contrast_factor)) + mean).astype(images.dtype)


@kernel("AdjustContrast")
def adjust_contrast_v1(images: Array, contrast_factor: Array, min_value: Array, max_value: Array) -> Array:
    """The same in float32 for any number type, kept between two values; the lower one wins."""
    drawn = adjust_contrast(images.astype(np.float32), contrast_factor)
    return np.asarray(np.maximum(np.minimum(drawn, np.float32(number(max_value))), np.float32(number(min_value))))


@kernel("AdjustHue")
def adjust_hue(images: Array, delta: Array) -> Array:
    """The hue turned by ``delta`` (1 is once round), between the least and the greatest colour of either sign."""
    _check_images(images)
    rgb = widened(_rgb(images))
    low, high = rgb.min(axis=-1, keepdims=True), rgb.max(axis=-1, keepdims=True)
    turned = rgb_to_hsv(rgb - low)[..., :1] + rgb.dtype.type(number(delta))
    full = hsv_to_rgb(np.concatenate([turned - np.floor(turned), *[np.ones_like(low)] * 2], axis=-1))
    mixed = np.where(full == 1, high, low + full * (high - low))
    return np.asarray(mixed, images.dtype)


TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]], np.float32)
"""Red, green and blue as NTSC's luma and chroma."""


@kernel("AdjustHsvInYiq", "Addons>AdjustHsvInYiq")
def adjust_hsv_in_yiq(images: Array, delta_h: Array, scale_s: Array, scale_v: Array) -> Array:
    """float32 (…, 3): chroma turned by ``delta_h`` radians and multiplied by ``scale_s``, all of it by ``scale_v``."""
    angle, more, lighter = (np.float32(number(value)) for value in (delta_h, scale_s, scale_v))
    _check_images(images)
    along, across = lighter * more * np.cos(angle), lighter * more * np.sin(angle)
    turn = np.array([[lighter, 0, 0], [0, along, -across], [0, across, along]], np.float32)
    whole = np.linalg.inv(TO_YIQ.astype(np.float64)) @ turn @ TO_YIQ
    return np.asarray(_rgb(images) @ whole.T.astype(np.float32))


@kernel("AdjustSaturation")
def adjust_saturation(images: Array, scale: Array) -> Array:
    """The saturation multiplied, within [0, 1]; 0 where the product is no number."""
    _check_images(images)
    hsv = rgb_to_hsv(widened(_rgb(images)))
    stronger = np.fmin(np.fmax(hsv[..., 1:2] * hsv.dtype.type(number(scale)), 0), 1).astype(hsv.dtype)
    return hsv_to_rgb(np.concatenate([hsv[..., :1], stronger, hsv[..., 2:]], axis=-1)).astype(images.dtype)
