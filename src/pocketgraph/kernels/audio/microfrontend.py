"""Sound as features for small speech models, in integers: mel bands, less noise, even gain, logarithms.

What TensorFlow's audio frontend for microcontrollers computes (tensorflow/lite/experimental/microfrontend), bit by bit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import UINT16
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.audio.fixed_point_fft import real_transform
from pocketgraph.kernels.registry import kernel

WEIGHT_BITS = 12  # of windows and of weights of bands
SMOOTHING_BITS = 14  # of the shares of noise
RATIO_BITS = 12  # of signal to noise
GAIN_BITS = 6  # of the result of the gain control
LOG_BITS = 16  # behind the point of logarithms
SEGMENTS = 7  # 2^7 pieces of the logarithm's table
LN_2 = 45426  # in 2^-16
MASK_32 = np.uint64(2**32 - 1)
LARGEST_16 = 2**16 - 1


@kernel("AudioMicrofrontend")
def audio_microfrontend(
    audio: Array, *, sample_rate: int = 16000, window_size: int = 25, window_step: int = 10, num_channels: int = 32,
    upper_band_limit: float = 7500.0, lower_band_limit: float = 125.0, smoothing_bits: int = 10,
    even_smoothing: float = 0.025, odd_smoothing: float = 0.06, min_signal_remaining: float = 0.05,
    enable_pcan: bool = False, pcan_strength: float = 0.95, pcan_offset: float = 80.0, gain_bits: int = 21,
    enable_log: bool = True, scale_shift: int = 6, left_context: int = 0, right_context: int = 0,
    frame_stride: int = 1, zero_padding: bool = False, out_scale: int = 1, out_type: DType = UINT16,
) -> Array:  # fmt: skip
    """(frames, channels × (1 + left_context + right_context)): a row for every ``frame_stride``-th window.

    Args:
        audio: int16 (samples,).
        sample_rate: samples a second.
        window_size, window_step: milliseconds.
        upper_band_limit, lower_band_limit: hertz, between which the channels divide the mel scale.
        even_smoothing, odd_smoothing: how fast the estimate of noise follows the signal, by channel.
        min_signal_remaining: the share of the signal that noise reduction leaves at least.
        left_context, right_context: windows before and after that stand in the same row.
        zero_padding: windows beyond the ends are zeros, not the first and last once more.
        out_scale: what the features are divided by.

    Raises:
        RunError: ``audio`` is no vector, or settings that make no windows or bands.
    """
    size, step = window_size * sample_rate // 1000, window_step * sample_rate // 1000
    if audio.ndim != 1:
        raise RunError(f"audio is not a vector, its shape is {list(audio.shape)}")
    if not 3 <= size <= 2**24 or not 1 <= step <= size:
        raise RunError(f"no windows of {size} samples every {step}")
    if min(frame_stride, out_scale, num_channels) < 1 or min(left_context, right_context) < 0:
        raise RunError("frame_stride, out_scale and num_channels must be positive, contexts not negative")
    if not (0 <= smoothing_bits < 32 and 0 <= scale_shift < 32 and 0 <= gain_bits < 32):
        raise RunError("smoothing_bits, scale_shift and gain_bits must be in [0, 32)")
    frames = (audio.size - size) // step + 1 if audio.size >= size else 0
    rows = (frames - 1) // frame_stride + 1 if frames else 0
    width = num_channels * (1 + left_context + right_context)
    reserve((rows, width), out_type.numpy)
    points = 1 << (size - 1).bit_length()
    weights, rest = _bands(points // 2 + 1, sample_rate, num_channels, lower_band_limit, upper_band_limit)
    if not frames:
        return np.zeros((0, width), out_type.numpy)
    signal = _amplitudes(audio, size, step, frames, points, weights, rest)
    correction = points.bit_length() - 1 - WEIGHT_BITS // 2
    smoothing = np.where(np.arange(num_channels) % 2, np.float32(odd_smoothing), np.float32(even_smoothing))
    signal, noise = _denoised(signal, smoothing_bits, smoothing, min_signal_remaining)
    if enable_pcan:
        table = _gains(pcan_strength, pcan_offset, gain_bits, smoothing_bits - correction)
        signal = _controlled(signal, noise, table, gain_bits - correction - RATIO_BITS)
    if enable_log:
        signal = _logarithms(signal, correction, scale_shift)
    values = np.minimum(signal, np.uint64(LARGEST_16)).astype(np.uint16)
    if out_type.numpy.kind == "f":
        features = values.astype(np.float32) / np.float32(out_scale)
    else:
        features = (values.astype(np.int64) // out_scale).astype(np.uint16)
    return _with_context(features, frame_stride, left_context, right_context, zero_padding)


def _with_context(features: Array, stride: int, left: int, right: int, zeros: bool) -> Array:
    """Each ``stride``-th row with those before and after it."""
    frames = len(features)
    places = np.arange(0, frames, stride)[:, None] + np.arange(-left, right + 1)
    found = features[np.clip(places, 0, frames - 1)]
    if zeros:
        found[(places < 0) | (places >= frames)] = 0
    return np.asarray(found.reshape(len(places), -1))


def _amplitudes(
    audio: Array, size: int, step: int, frames: int, points: int, weights: Array, rest: Array
) -> Array:  # fmt: skip
    """uint64 (frames, channels): the square root of the power in each band."""
    angle = np.float32(np.pi * 2.0 / np.float32(size))
    window = (0.5 - 0.5 * np.cos(np.float64(angle) * (np.arange(size) + 0.5))).astype(np.float32)
    fixed = np.floor((window * np.float32(1 << WEIGHT_BITS)).astype(np.float64) + 0.5).astype(np.int64)
    pieces = np.lib.stride_tricks.sliding_window_view(audio.astype(np.int64), size)[::step][:frames]
    found = np.empty((frames, len(weights) - 1), np.uint64)
    at_once = max(1, (1 << 20) // points)
    for first in range(0, frames, at_once):
        rows = (pieces[first : first + at_once] * fixed) >> WEIGHT_BITS
        loudest = np.where(rows == -32768, rows, np.abs(rows)).max(axis=1).clip(0)
        shift = 15 - np.array([int(value).bit_length() for value in loudest])
        scaled = np.zeros((len(rows), points), np.int16)
        scaled[:, :size] = (rows << shift[:, None]).astype(np.int16)
        real, imaginary = real_transform(scaled)
        power = (real * real + imaginary * imaginary).astype(np.uint32).astype(np.int32).astype(np.int64)
        sums = power @ weights.T
        sums[:, 1:] += power @ rest[:-1].T
        roots = _square_roots(sums[:, 1:].astype(np.uint64))
        found[first : first + at_once] = roots >> shift[:, None].astype(np.uint64)
    return found


def _square_roots(values: Array) -> Array:
    """Square roots rounded to the nearest integer, but to 16 bits where the number has 32."""
    guess = np.sqrt(values.astype(np.float64)).astype(np.uint64)
    guess -= (guess * guess > values).astype(np.uint64)
    guess += ((guess + np.uint64(1)) * (guess + np.uint64(1)) <= values).astype(np.uint64)
    most = np.where(values >> np.uint64(32) == 0, np.uint64(LARGEST_16), MASK_32)
    return np.asarray(guess + ((values - guess * guess > guess) & (guess != most)).astype(np.uint64))


def _mel(hertz: Array) -> Array:
    """float32 places on the mel scale."""
    return np.asarray((1127.0 * np.log1p(hertz.astype(np.float32).astype(np.float64) / 700.0)).astype(np.float32))


@lru_cache(maxsize=4)
def _bands(bins: int, rate: int, channels: int, low: float, high: float) -> tuple[Array, Array]:
    """int64 (channels + 1, bins) each: what a bin gives to its band, and what it gives to the band after."""
    if not 0 <= low < high < np.inf or rate < 1:
        raise RunError(f"no bands from {low} to {high} hertz of {rate} samples a second")
    lowest = _mel(np.float32(low)[None])[0]
    spacing = np.float32((_mel(np.float32(high)[None])[0] - lowest) / np.float32(channels + 1))
    centers = lowest + spacing * np.arange(1, channels + 2).astype(np.float32)
    width = np.float32(0.5 * rate / np.float64(np.float32(bins) - np.float32(1)))
    first = int(1.5 + np.float64(np.float32(low) / width))  # never the constant part
    mels = _mel(np.arange(bins + 1).astype(np.float32) * width)
    ends = np.maximum(np.searchsorted(mels, centers, side="right"), first)
    if ends[-1] >= bins:
        raise RunError(f"the highest band, {high} hertz, lies above what {rate} samples a second hold")
    reserve((2, channels + 1, bins), np.dtype(np.int64))
    weights, rest = np.zeros((2, channels + 1, bins), np.int64)
    for channel, end in enumerate(ends):
        begin = first if channel == 0 else int(ends[channel - 1])
        below = lowest if channel == 0 else centers[channel - 1]
        share = (centers[channel] - mels[begin:end]) / (centers[channel] - below)
        unit = np.float32(1 << WEIGHT_BITS)
        weights[channel, begin:end] = np.floor((share * unit).astype(np.float64) + 0.5)
        rest[channel, begin:end] = np.floor((1.0 - share.astype(np.float64)) * float(unit) + 0.5)
    return weights, rest


def _denoised(signal: Array, bits: int, smoothing: Array, least: float) -> tuple[Array, Array]:
    """(signal without noise, estimate of the noise), uint64 (frames, channels) each; frame by frame."""
    share = (smoothing * np.float32(1 << SMOOTHING_BITS)).astype(np.uint16).astype(np.uint64)
    keep = np.uint64((1 << SMOOTHING_BITS) & 0xFFFFFFFF) - share
    kept = np.uint64(np.uint16(np.float32(least) * np.float32(1 << SMOOTHING_BITS)))
    fine, coarse = np.uint64(SMOOTHING_BITS), np.uint64(bits)
    scaled = (signal << coarse) & MASK_32
    noise = np.empty_like(signal)
    estimate = np.zeros(signal.shape[1], np.uint64)
    for frame, row in enumerate(scaled):
        estimate = ((row * share + estimate * keep) >> fine) & MASK_32
        noise[frame] = estimate
    left = (scaled - np.minimum(noise, scaled)) >> coarse
    return np.maximum(left, (signal * kept) >> fine), noise


def _gain(strength: float, offset: float, bits: int, noise: int, scale: int) -> int:
    """The gain for one level of noise, 16 bits."""
    level = np.float32(np.float32(noise) / np.float32(1 << scale)) + np.float32(offset)
    with np.errstate(all="ignore"):
        power = np.float32(np.power(np.float64(level), -np.float64(np.float32(strength))))
        gain = np.float32(1 << bits) * power
    return 32767 if not gain <= 32767 else int(gain + np.float32(0.5))


def _in_16_bits(value: int) -> int:
    return (value + 32768) % 65536 - 32768


@lru_cache(maxsize=4)
def _gains(strength: float, offset: float, bits: int, scale: int) -> Array:
    """int64 (33, 3): for noise of each number of bits a value and two steps of a parabola; 0 and 1 in row 0."""
    if not 0 <= scale < 32:
        raise RunError(f"smoothing_bits make no gain control: {scale} bits are left")

    def at(noise: int) -> int:
        return _gain(strength, offset, bits, noise, scale)

    table = np.zeros((33, 3), np.int64)
    table[0, :2] = at(0), at(1)
    for size in range(2, 33):
        begin = 1 << size - 1
        end = begin + (begin - 1) if size == 32 else 2 * begin
        low, middle, high = at(begin), at(begin + (begin >> 1)), at(end)
        slope = 4 * (middle - low) - (high - low)
        table[size] = low, _in_16_bits(slope), _in_16_bits(high - low - slope)
    return table


def _controlled(signal: Array, noise: Array, table: Array, shift: int) -> Array:
    """The signal divided by a power of its noise, and pressed together where it is loud."""
    if not 0 <= shift < 64:
        raise RunError(f"gain_bits make no gain control: {shift} bits are left")
    level = noise.astype(np.int64)
    size = np.frexp(level.astype(np.float64))[1].astype(np.int64)
    low, slope, bend = (table[size, part] for part in range(3))
    place = np.where(size < 11, level << np.maximum(11 - size, 0), level >> np.maximum(size - 11, 0)) & 0x3FF
    curve = ((bend * place) >> 5) + (slope << 5)
    curve = (curve * place + (1 << 14)) >> 15
    gain = np.where(level < 2, table[0, np.minimum(level, 1)], low + np.where(level == 2, 0, curve))
    fixed = gain.astype(np.int16).astype(np.uint32).astype(np.uint64)  # beyond 16 bits it is negative in the original
    ratio = ((signal * fixed) >> np.uint64(shift)) & MASK_32
    quiet = ((ratio * ratio) & MASK_32) >> np.uint64(2 + 2 * RATIO_BITS - GAIN_BITS)
    loud = (ratio >> np.uint64(RATIO_BITS - GAIN_BITS)) - np.uint64(1 << GAIN_BITS)
    return np.asarray(np.where(ratio < np.uint64(2 << RATIO_BITS), quiet, loud))


@lru_cache(maxsize=1)
def _log_table() -> Array:
    """By how much the logarithm to base 2 lies above the straight line from 1 to 2, in 2^-16, at 128 places."""
    places = np.arange((1 << SEGMENTS) + 1) / (1 << SEGMENTS)
    return np.rint((np.log2(1 + places) - places) * (1 << LOG_BITS)).astype(np.int64)


def _logarithms(signal: Array, correction: int, scale: int) -> Array:
    """Natural logarithms in 2^-scale of the signal shifted by ``correction`` bits; 0 up to 1."""
    shifted = signal >> np.uint64(-correction) if correction < 0 else (signal << np.uint64(correction)) & MASK_32
    values = np.maximum(shifted.astype(np.int64), 1)
    whole = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    rest = values - (np.int64(1) << whole)
    rest = np.where(whole < LOG_BITS, rest << np.maximum(LOG_BITS - whole, 0), rest >> np.maximum(whole - LOG_BITS, 0))
    segment = rest >> (LOG_BITS - SEGMENTS)
    table = _log_table()
    low = table[segment]
    between = ((table[segment + 1] - low) * (rest - (segment << (LOG_BITS - SEGMENTS)))) >> LOG_BITS
    half = 1 << LOG_BITS - 1
    natural = (LN_2 * ((whole << LOG_BITS) + rest + low + between) + half) >> LOG_BITS
    scaled = ((((natural << scale) & 0xFFFFFFFF) + half) & 0xFFFFFFFF) >> LOG_BITS
    return np.where(shifted > 1, scaled, 0).astype(np.uint64)
