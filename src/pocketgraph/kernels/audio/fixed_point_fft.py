"""A Fourier transform in 16-bit integers, as small processors do it: every step halves its inputs and rounds.

The steps and roundings are those of the KISS FFT library with FIXED_POINT 16 (github.com/mborgerding/kissfft), on which
TensorFlow's audio frontend for microcontrollers is built, so that the numbers are equal to the last bit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pocketgraph.kernels.arrays import Array

FRACTION = 15  # bits behind the point
ONE = 32767  # the largest 16-bit number, which stands for 1


def _rounded(product: Array) -> Array:
    """Products of two 16-bit numbers as 16-bit numbers again."""
    return _wrapped((product + (1 << FRACTION - 1)) >> FRACTION)


def _wrapped(values: Array) -> Array:
    """What is left of integers in 16 bits."""
    return np.asarray(values.astype(np.int16).astype(np.int64))


def _times(real: Array, imaginary: Array, turn: tuple[Array, Array]) -> tuple[Array, Array]:
    cosine, sine = turn
    return _rounded(real * cosine - imaginary * sine), _rounded(real * sine + imaginary * cosine)


def _turns(phases: Array) -> tuple[Array, Array]:
    """Cosines and sines of angles in radians."""
    return (
        np.floor(0.5 + ONE * np.cos(phases)).astype(np.int64),
        np.floor(0.5 + ONE * np.sin(phases)).astype(np.int64),
    )


@lru_cache(maxsize=8)
def _roots(size: int) -> tuple[Array, Array]:
    return _turns(-2 * np.pi * np.arange(size) / size)


def _transformed(real: Array, imaginary: Array, whole: int) -> tuple[Array, Array]:
    """The transform of complex rows whose length is a power of two, divided by it; ``whole`` is the first call's."""
    size = real.shape[-1]
    if size == 1:
        return real, imaginary
    radix = 4 if size % 4 == 0 else 2
    share = size // radix
    parts = [_transformed(real[..., first::radix], imaginary[..., first::radix], whole) for first in range(radix)]
    scale = ONE // radix
    scaled = [(_rounded(a * scale), _rounded(b * scale)) for a, b in parts]
    cosines, sines = _roots(whole)
    step = whole // size
    turned = [scaled[0]]
    for number in range(1, radix):
        places = np.arange(share) * step * number
        turned.append(_times(*scaled[number], (cosines[places], sines[places])))
    if radix == 2:
        (a, b), (c, d) = turned
        found = [(a + c, b + d), (a - c, b - d)]
    else:
        (a, b), (c, d), (e, f), (g, h) = turned
        even, odd = (_wrapped(a + e), _wrapped(b + f)), (_wrapped(a - e), _wrapped(b - f))
        total, apart = (_wrapped(c + g), _wrapped(d + h)), (_wrapped(c - g), _wrapped(d - h))
        found = [
            (even[0] + total[0], even[1] + total[1]), (odd[0] + apart[1], odd[1] - apart[0]),
            (even[0] - total[0], even[1] - total[1]), (odd[0] - apart[1], odd[1] + apart[0]),
        ]  # fmt: skip
    return (
        _wrapped(np.concatenate([part[0] for part in found], axis=-1)),
        _wrapped(np.concatenate([part[1] for part in found], axis=-1)),
    )


def real_transform(rows: Array) -> tuple[Array, Array]:
    """int64 (…, n / 2 + 1) real and imaginary parts of the transform of int16 (…, n), divided by n; n is a power of two
    and at least 4."""
    size = rows.shape[-1]
    half = size // 2
    wide = rows.astype(np.int64)
    real, imaginary = _transformed(wide[..., 0::2], wide[..., 1::2], half)
    real, imaginary = _rounded(real * (ONE // 2)), _rounded(imaginary * (ONE // 2))
    places = np.arange(1, half // 2 + 1)
    other = half - places
    sums = _wrapped(real[..., places] + real[..., other]), _wrapped(imaginary[..., places] - imaginary[..., other])
    apart = _wrapped(real[..., places] - real[..., other]), _wrapped(imaginary[..., places] + imaginary[..., other])
    turned = _times(*apart, _turns(-np.pi * (places / half + 0.5)))
    found = np.zeros((2, *rows.shape[:-1], half + 1), np.int64)
    found[0, ..., 0] = _wrapped(real[..., 0] + imaginary[..., 0])
    found[0, ..., half] = _wrapped(real[..., 0] - imaginary[..., 0])
    found[0, ..., places] = np.moveaxis((sums[0] + turned[0]) >> 1, -1, 0)
    found[1, ..., places] = np.moveaxis((sums[1] + turned[1]) >> 1, -1, 0)
    found[0, ..., other] = np.moveaxis((sums[0] - turned[0]) >> 1, -1, 0)
    found[1, ..., other] = np.moveaxis((turned[1] - sums[1]) >> 1, -1, 0)
    return _wrapped(found[0]), _wrapped(found[1])
