"""Sound: WAV files, spectrograms, mel-frequency cepstral coefficients."""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, reserve, strings
from pocketgraph.kernels.quantized.eight_bit_arithmetic import half_away
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.thread_buffers import scratch

PCM = 1
"""The WAV format number of plain samples, the only one read."""
FULL_SCALE = 32768.0
QUIETEST = 1e-12
"""The smallest mel band whose logarithm is taken."""


def read_wav(data: bytes) -> tuple[Array, int]:
    """(float32 (samples, channels) in [-1, 1), samples a second) of a 16-bit PCM WAV file.

    Raises:
        RunError: the bytes are no such file.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise RunError(f"Header mismatch: Expected RIFF and WAVE but found {data[:4]!r} and {data[8:12]!r}")
    place, channels, rate = 12, 0, 0
    while place + 8 <= len(data):
        name, size = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        body = data[place + 8 : place + 8 + size]
        if name == b"fmt ":
            if len(body) < 16:
                raise RunError(f"Bad size for WAV fmt chunk: Expected 16 or more, but got {len(body)}")
            form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            if form != PCM:
                raise RunError(f"Bad audio format for WAV: Expected 1 (PCM), but got {form}")
            if bits != 16 or channels < 1:
                raise RunError(f"Can only read 16-bit WAV files, but received {bits} bits in {channels} channels")
        elif name == b"data":
            if not channels:
                raise RunError("Data chunk found before fmt chunk")
            if len(body) < size:
                raise RunError(f"Data too short: the WAV file announces {size} bytes of samples and has {len(body)}")
            count = len(body) // (2 * channels)
            samples = np.frombuffer(body, dtype="<i2", count=count * channels).astype(np.float32)
            samples *= np.float32(1 / FULL_SCALE)  # a power of two: the same as dividing
            return samples.reshape(count, channels), rate
        place += 8 + size + size % 2
    raise RunError("No data chunk found in WAV")


@kernel("DecodeWav")
def decode_wav(contents: Array, *, desired_channels: int = -1, desired_samples: int = -1) -> tuple[Array, Array]:
    """(samples, sample rate), cut or filled with silence to ``desired_samples``; the last channel is repeated."""
    samples, rate = read_wav(bytes(contents.reshape(()).item()))
    if desired_channels > 0:
        samples = samples[:, np.minimum(np.arange(desired_channels), samples.shape[1] - 1)]
    if desired_samples >= 0 and desired_samples != samples.shape[0]:
        whole = np.zeros(reserve((desired_samples, samples.shape[1]), np.float32), dtype=np.float32)
        count = min(desired_samples, samples.shape[0])
        whole[:count] = samples[:count]
        samples = whole
    return samples, np.array(rate, dtype=np.int32)


@kernel("EncodeWav")
def encode_wav(audio: Array, sample_rate: Array) -> Array:
    channels = audio.shape[1]
    rate = integer(sample_rate)
    if not 0 < rate < 1 << 31 or not 0 < channels < 1 << 15 or rate * channels * 2 >= 1 << 32:
        raise RunError(f"no WAV file has {channels} channels at a rate of {rate}")
    scaled = np.clip(np.nan_to_num(audio * np.float32(FULL_SCALE), nan=0), -32768, 32767)
    codes = np.clip(half_away(scaled), -32768, 32767).astype("<i2").tobytes()
    header = struct.pack("<4sI4s", b"RIFF", 36 + len(codes), b"WAVE")
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, PCM, channels, rate, rate * channels * 2, channels * 2, 16)
    return strings([header + form + struct.pack("<4sI", b"data", len(codes)) + codes], ())


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
    wave = scratch("wave", (samples,), np.float64)
    windows = scratch("windows", (rows, length), np.float64)
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
    parts = np.fft.rfft(windows).view(np.float64) if OLD_FFT else _spectrum(windows).view(np.float64)
    np.multiply(parts, parts, out=parts)
    if squared:
        np.add(parts[:, ::2], parts[:, 1::2], out=out, casting="same_kind")
    else:
        power = np.add(parts[:, ::2], parts[:, 1::2], out=parts[:, ::2])
        np.sqrt(power, out=out, casting="same_kind")


OLD_FFT = np.lib.NumpyVersion(np.__version__) < "2.0.0"
"""NumPy before 2.0 puts a transform always into a new array."""


def _spectrum(windows: Array) -> Array:
    rows, length = windows.shape
    return np.fft.rfft(windows, out=scratch("spectrum", (rows, length // 2 + 1), np.complex128))


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
    if spectrogram.ndim != 3:
        raise RunError(f"spectrogram must be 3-dimensional, not of shape {list(spectrogram.shape)}")
    bands = filterbank_channel_count
    if bands < 1 or dct_coefficient_count < 1:
        raise RunError(f"{bands} mel bands and {dct_coefficient_count} coefficients; there must be some of both")
    reserve((max(spectrogram.shape[-1], dct_coefficient_count, 1), bands), np.float64)
    first, weights = _used_weights(
        spectrogram.shape[-1], float(integer(sample_rate)), bands, lower_frequency_limit, upper_frequency_limit
    )
    magnitudes = spectrogram[..., first : first + len(weights)].astype(np.float64)
    energies = _by_frames(np.sqrt(magnitudes, out=magnitudes), weights)
    logs = np.log(np.maximum(energies, QUIETEST))
    return np.asarray(logs @ _cosines(bands, dct_coefficient_count)).astype(np.float32)


SMALL_PRODUCT = 1 << 18  # multiplications of a product that is too small for BLAS to wake its threads for it


def _by_frames(values: Array, weights: Array) -> Array:
    """values @ weights, some rows at a time: to wake BLAS's threads would take longer than the work."""
    rows, frames = values.reshape(-1, values.shape[-1]), max(1, SMALL_PRODUCT // max(1, weights.size))
    parts = [rows[start : start + frames] @ weights for start in range(0, rows.shape[0], frames)]
    shape = (*values.shape[:-1], weights.shape[1])
    return np.concatenate(parts).reshape(shape) if parts else np.zeros(shape)


@lru_cache(maxsize=8)
def _used_weights(bins: int, rate: float, bands: int, low: float, high: float) -> tuple[int, Array]:
    """The first frequency that counts, and ``mel_weights`` from there to the last that does."""
    weights = mel_weights(bins, rate, bands, low, high)
    used = np.flatnonzero(weights.any(axis=1))
    first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
    return first, np.ascontiguousarray(weights[first:last])


@lru_cache(maxsize=8)
def _cosines(bands: int, count: int) -> Array:
    """(bands, count): the orthonormal cosine transform's first rows, as columns."""
    angles = np.pi / bands * np.outer(np.arange(bands) + 0.5, np.arange(count))
    return np.asarray(np.sqrt(2.0 / bands) * np.cos(angles))
