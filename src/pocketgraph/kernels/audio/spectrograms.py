"""Sound as spectrograms and mel-frequency cepstral coefficients."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, reserve
from pocketgraph.kernels.registry import kernel

QUIETEST = 1e-12
"""The smallest mel band whose logarithm is taken."""


@lru_cache(maxsize=8)
def _hann(size: int) -> Array:
    """The periodic Hann window."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    window.flags.writeable = False
    return np.asarray(window)


@kernel("AudioSpectrogram")
def audio_spectrogram(input: Array, *, window_size: int, stride: int, magnitude_squared: bool = False) -> Array:
    """float32 (channels, frames, frequencies): Hann windows, transformed at the next power of two."""
    if input.ndim != 2:
        raise ValueError(f"input must be (samples, channels), not {list(input.shape)}")
    if window_size < 2 or stride < 1:
        raise ValueError(f"a window of {window_size} with stride {stride}")
    samples, channels = input.shape
    length = 1 << (window_size - 1).bit_length()
    frames = 1 + (samples - window_size) // stride if samples >= window_size else 0
    result = np.empty(reserve((channels, frames, length // 2 + 1), np.float32), dtype=np.float32)
    if not frames:
        return result
    rows = min(frames, max(1, BLOCK // length))
    wave = np.empty(samples, np.float64)
    windows = np.empty((rows, length), np.float64)
    windows[:, window_size:] = 0
    hann, step = _hann(window_size), wave.itemsize
    cut = np.ndarray((frames, window_size), np.float64, wave, 0, (step * stride, step))
    for channel in range(channels):
        wave[:] = input[:, channel]
        for start in range(0, frames, rows):
            some = slice(start, start + rows)
            count = min(rows, frames - start)
            np.multiply(cut[some], hann, out=windows[:count, :window_size])
            _powers(windows[:count], result[channel, some], magnitude_squared)
    return result


BLOCK = 1 << 15  # samples of the windows that are transformed at once; these and the spectrum fit a processor's cache


def _powers(windows: Array, out: Array, squared: bool) -> None:
    """The squares of the spectrum's magnitudes, or these themselves, of each row."""
    parts = np.fft.rfft(windows).view(np.float64)
    np.multiply(parts, parts, out=parts)
    if squared:
        np.add(parts[:, ::2], parts[:, 1::2], out=out, casting="same_kind")
    else:
        power = np.add(parts[:, ::2], parts[:, 1::2], out=parts[:, ::2])
        np.sqrt(power, out=out, casting="same_kind")


def _mel(hertz: Array | float) -> Array:
    return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))


@lru_cache(maxsize=8)
def mel_weights(bins: int, rate: float, bands: int, low: float, high: float) -> Array:
    """(bins, bands): how much each frequency adds to each of the overlapping triangular mel bands."""
    if bands < 1 or bins < 2 or rate <= 0 or low < 0 or high <= low:
        raise ValueError(f"{bands} mel bands of {low}..{high} Hz from {bins} frequencies at a rate of {rate}")
    mel_low = float(_mel(low))
    spacing = (float(_mel(high)) - mel_low) / (bands + 1)
    centers = mel_low + spacing * np.arange(bands + 2)  # the lower limit, the bands, the upper limit
    step = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / step), int(high / step)
    if last >= bins:
        raise ValueError(f"a spectrum of {bins} frequencies does not reach {high} Hz at a rate of {rate}")
    weights = np.zeros(reserve((bins, bands + 2), np.float64))
    for place in range(first, last + 1):
        mel = float(_mel(place * step))
        below = int(np.searchsorted(centers[1:], mel, side="left"))
        share = (centers[below + 1] - mel) / (centers[below + 1] - centers[below]) if below <= bands else 0.0
        weights[place, below] += share
        if below + 1 < bands + 2:
            weights[place, below + 1] += 1 - share
    return weights[:, 1 : bands + 1]


@kernel("Mfcc")
def mfcc(
    spectrogram: Array,
    sample_rate: Array,
    *,
    upper_frequency_limit: float = 4000.0,
    lower_frequency_limit: float = 20.0,
    filterbank_channel_count: int = 40,
    dct_coefficient_count: int = 13,
) -> Array:
    """float32 (channels, frames, coefficients) of squared magnitudes: mel bands, logarithm, cosine transform."""
    bands = filterbank_channel_count
    if bands < 1 or dct_coefficient_count < 1:
        raise RunError(f"{bands} mel bands and {dct_coefficient_count} coefficients; there must be some of both")
    if dct_coefficient_count > bands:
        raise RunError(f"{dct_coefficient_count} coefficients of {bands} mel bands; there can be {bands} at most")
    reserve((max(spectrogram.shape[-1], dct_coefficient_count, 1), bands), np.float64)
    limits = lower_frequency_limit, upper_frequency_limit
    logs = log_energies(spectrogram, float(integer(sample_rate)), bands, *limits)
    return np.asarray(logs @ cosines(bands, dct_coefficient_count)).astype(np.float32)


def log_energies(spectrogram: Array, rate: float, bands: int, low: float, high: float) -> Array:
    """float64 (..., bands): logarithms of the energies in mel bands, of squared magnitudes."""
    first, weights = _used_weights(spectrogram.shape[-1], rate, bands, low, high)
    magnitudes = spectrogram[..., first : first + len(weights)].astype(np.float64)
    energies = _by_frames(np.sqrt(magnitudes, out=magnitudes), weights)
    return np.asarray(np.log(np.maximum(energies, QUIETEST)))


SMALL_PRODUCT = 1 << 18  # multiplications of a product that is too small for BLAS to wake its threads for it


def _by_frames(values: Array, weights: Array) -> Array:
    """values @ weights, some rows at a time: to wake BLAS's threads would take longer than the work."""
    shape = (*values.shape[:-1], weights.shape[1])
    if not values.size:
        return np.zeros(shape)
    rows, frames = values.reshape(-1, values.shape[-1]), max(1, SMALL_PRODUCT // max(1, weights.size))
    parts = [rows[start : start + frames] @ weights for start in range(0, rows.shape[0], frames)]
    return np.concatenate(parts).reshape(shape)


@lru_cache(maxsize=8)
def _used_weights(bins: int, rate: float, bands: int, low: float, high: float) -> tuple[int, Array]:
    """The first frequency that counts, and ``mel_weights`` from there to the last that does."""
    weights = mel_weights(bins, rate, bands, low, high)
    used = np.flatnonzero(weights.any(axis=1))
    first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
    return first, np.ascontiguousarray(weights[first:last])


@lru_cache(maxsize=8)
def cosines(bands: int, count: int) -> Array:
    """(bands, count): the orthonormal cosine transform's first rows, as columns."""
    angles = np.outer(np.arange(bands) + 0.5, np.arange(count) * (np.pi / bands))
    return np.asarray(np.sqrt(2.0 / bands) * np.cos(angles))
