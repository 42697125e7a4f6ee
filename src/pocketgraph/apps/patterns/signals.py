"""Spectrograms of any signal as pictures for a convolutional network: a microphone, an accelerometer, a motor."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import UsageError
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.audio.spectrograms import audio_spectrogram
from pocketgraph.pages.quantities import counted


def spectrogram_picture(
    signal: Array, rate: float, *, window: float = 0.03, stride: float = 0.01, floor: float = 1e-6
) -> Array:
    """Log magnitudes of a signal's short-time spectrum.

    Args:
        signal: [samples] or [samples, axes]; an accelerometer has three axes.
        rate: samples a second.
        window, stride: seconds.
        floor: the smallest magnitude whose logarithm is taken.

    Returns:
        float32 [times, frequencies, axes], the axes as a picture's channels. Frequency k is
        ``k * rate / n`` Hz, where n is the window's samples, rounded up to a power of two.

    Raises:
        UsageError: the window has fewer than two samples, or the signal is shorter than it.
    """
    wave = np.asarray(signal, np.float32)
    wave = wave[:, None] if wave.ndim == 1 else wave
    size, step = round(window * rate), max(1, round(stride * rate))
    if wave.ndim != 2 or size < 2:
        raise UsageError(f"a window of {window:g} s has {counted(size, 'sample')} at {rate:g} a second; it needs two")
    if len(wave) < size:
        raise UsageError(f"the signal has {counted(len(wave), 'sample')}, fewer than a window's {size}")
    shown = audio_spectrogram(wave, window_size=size, stride=step, magnitude_squared=False)
    found: Array = np.log(np.maximum(shown, np.float32(floor))).transpose(1, 2, 0)
    return found
