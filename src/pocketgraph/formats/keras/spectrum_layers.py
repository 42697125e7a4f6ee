"""Layers of Keras that make spectra of sound."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from pocketgraph.formats.keras.activation_functions import scaled
from pocketgraph.formats.keras.composed_operations import Operations
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, Rule, contraction, expanded, transposed
from pocketgraph.formats.keras.operations import OPERATIONS
from pocketgraph.formats.keras.window_layers import strided
from pocketgraph.graph.dtype import COMPLEX64, FLOAT
from pocketgraph.graph.tensor import Array

COSINES = {"hann": 0.5, "hamming": 0.54}
"""What windows of a cosine are the mean of."""


def mel_spectrogram(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Sound as energies on the mel scale, [batch, bins, frames], in decibels below the loudest of the batch.

    Source: keras/src/layers/preprocessing/mel_spectrogram.py.

    Raises:
        FormatError: it is not a batch of one known length, or has a window of numbers.
    """
    config = writer.config
    length, stride, samples = int(config["fft_length"]), int(config["sequence_stride"]), value.dims[-1]
    if len(value.dims) != 2 or samples is None or config["window"] not in (*COSINES, None):
        raise writer.refuse("takes sound of open lengths, or through a window of numbers, which is not read")
    half = length // 2
    sound = writer.add("MirrorPad", value, writer.const([(0, 0), (half, half)], "paddings"),
                       dims=(value.dims[0], samples + 2 * half), mode=b"REFLECT")  # fmt: skip
    count = 1 + (samples + 2 * half - length) // stride
    places = writer.const(np.arange(count)[:, None] * stride + np.arange(length), "places")
    frames = writer.add("GatherV2", sound, places, writer.const(1, "axis"), dims=(value.dims[0], count, length))
    if config["window"] is not None:
        frames = scaled(writer, frames, _window(config["window"], int(config["sequence_length"]), length))
    dims = (*frames.dims[:2], half + 1)
    spectrum = writer.add("RFFT", frames, writer.const([length], "length"), dims=dims, Tcomplex=COMPLEX64)
    energy = writer.add("ComplexAbs", spectrum)
    energy = writer.add("Pow", energy, writer.const(float(config["mag_exp"]), "exponent", FLOAT))
    weights = _mel_weights(
        int(config["num_mel_bins"]), half + 1, float(config["sampling_rate"]), float(config["min_freq"]),
        float(config["max_freq"]),
    )  # fmt: skip
    made = contraction(writer, "abc,cd->abd", energy, writer.const(weights, "mel", FLOAT))
    if config["power_to_db"]:
        least = float(config["min_power"])
        loud = writer.add("Log", writer.add("Maximum", made, writer.const(least, "least", FLOAT)))
        reference = log(max(abs(float(config["ref_power"])), least))
        made = scaled(writer, loud, 10 / log(10), -10 / log(10) * reference)
        loudest = writer.add("Max", made, writer.const([0, 1, 2], "axes"), dims=())
        floor = writer.add("Sub", loudest, writer.const(float(config["top_db"]), "top", FLOAT))
        made = writer.add("Maximum", made, floor)
    return transposed(writer, made, [0, 2, 1])


def stft_spectrogram(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Short-time Fourier transforms by convolutions, of each channel of a sound of a known length, in one of several
    forms.

    Source: keras/src/layers/preprocessing/stft_spectrogram.py.

    Raises:
        FormatError: the length or the channels are open.
    """
    config, ops, mode = writer.config, Operations(writer, OPERATIONS), str(writer.config["mode"])
    is_first = config.get("data_format") == "channels_first"
    value = value if is_first else transposed(writer, value, [0, 2, 1])
    channels, samples = value.dims[1:]
    if channels is None or samples is None:
        raise writer.refuse("takes sound of open lengths or channels, which is not read")
    rows = writer.reshaped(value, (None, 1, samples, 1))
    step = int(config.get("frame_step") or int(config["frame_length"]) // 2)

    def part(name: str) -> KerasTensor:
        """[batch, channels, frequencies, frames]."""
        kernel = expanded(writer, writer.weight(name), 0)
        count = strided(samples, int(config["frame_length"]), step, config["padding"])
        made = writer.add("Conv2D", rows, kernel, dims=(None, 1, count, kernel.dims[-1]), strides=(1, 1, step, 1),
                          padding=config["padding"].upper().encode())  # fmt: skip
        made = writer.reshaped(made, (None, channels, count, kernel.dims[-1]))
        return transposed(writer, made, [0, 1, 3, 2])

    made: Any
    made, *others = (
        part(f"{name}_kernel") for name in ("real", "imag") if mode == name or mode not in ("real", "imag")
    )
    if mode == "angle":
        made = ops.Arctan2(*others, made)
    elif mode == "stft":
        made = ops.Concatenate([made, *others], 2)
    elif others:
        made = ops.Add(ops.Square(made), ops.Square(*others))
        if mode == "psd":
            inner = ops.GetItem(made, [{}, {}, {"start": 1, "stop": -1}])
            made = ops.Add(made, ops.Pad(inner, [[0, 0], [0, 0], [1, 1], [0, 0]]))
        else:
            made = ops.Sqrt(ops.Maximum(made, 1e-7))
            made = made if mode == "magnitude" else ops.Log(ops.Maximum(made, 1e-7))
    if config.get("expand_dims"):
        return transposed(writer, made, [0, 1, 3, 2] if is_first else [0, 3, 2, 1])
    flat = writer.reshaped(made, (None, channels * (made.dims[2] or 0), made.dims[3]))
    return flat if is_first else transposed(writer, flat, [0, 2, 1])


def _window(kind: str, size: int, length: int) -> Array:
    """A window in the middle of zeros; TensorFlow's of an odd size ends as it begins, though called periodic."""
    period = size - size % 2
    cosine = np.cos(2 * np.pi * np.arange(size) / period) if size > 1 else -np.ones(1)
    before = (length - size) // 2
    mean = COSINES[kind]
    return np.pad(mean - (1 - mean) * cosine, (before, length - size - before))


def _mel_weights(bins: int, frequencies: int, rate: float, lowest: float, highest: float) -> Array:
    """Triangles that overlap by half along the mel scale, as factors of frequencies, [frequencies, bins], in float32 as
    Keras computes them: a small factor is as exact as the difference that it is."""

    def mel(hertz: object) -> Array:
        return np.asarray(np.float32(1127) * np.log(1 + np.asarray(hertz, np.float32) / np.float32(700)))

    at = mel(np.linspace(0, rate / 2, frequencies)[1:])[:, None]
    edges = np.linspace(mel(lowest), mel(highest), bins + 2, dtype=np.float32)
    rising = (at - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - at) / (edges[2:] - edges[1:-1])
    return np.pad(np.maximum(0, np.minimum(rising, falling)), ((1, 0), (0, 0)))


RULES: dict[str, Rule] = {"MelSpectrogram": mel_spectrogram, "STFTSpectrogram": stft_spectrogram}
