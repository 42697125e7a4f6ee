"""WAV files, read and written."""

from __future__ import annotations

import struct

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, reserve, strings
from pocketgraph.kernels.audio.wav_samples import PCM, STREAMED, format_of, samples_of
from pocketgraph.kernels.quantized.eight_bit_arithmetic import half_away
from pocketgraph.kernels.registry import kernel

FULL_SCALE = 32768.0


CHUNKS = (b"fmt ", b"data", b"LIST", b"fact")


def read_wav(data: bytes, *, any_format: bool = False) -> tuple[Array, int]:
    """(float32 (samples, channels) in [-1, 1], samples a second) of a WAV file.

    Args:
        data: the file.
        any_format: read also what TensorFlow does not: samples that are no 16-bit ones, and what was written into a
            pipe, whose header does not tell how much there is.

    Raises:
        RunError: the bytes are no such file.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise RunError(f"Header mismatch: Expected RIFF and WAVE but found {data[:4]!r} and {data[8:12]!r}")
    place, channels, rate, form, bits = 12, 0, 0, PCM, 16
    while place + 8 <= len(data):
        name, size = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        body = data[place + 8 : place + 8 + size]
        if name == b"fmt ":
            if len(body) < 16:
                raise RunError(f"Bad size for WAV fmt chunk: Expected 16 or more, but got {len(body)}")
            form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            if any_format:
                form = format_of(body)
            elif form != PCM:
                raise RunError(f"Bad audio format for WAV: Expected 1 (PCM), but got {form}")
            if channels < 1 or not (any_format or bits == 16):
                raise RunError(f"Can only read 16-bit WAV files, but received {bits} bits in {channels} channels")
        elif name == b"data":
            if not channels:
                raise RunError("Data chunk found before fmt chunk")
            if len(body) < size and not (any_format and size >= STREAMED):
                raise RunError(f"Data too short: the WAV file announces {size} bytes of samples and has {len(body)}")
            samples = samples_of(body, form, bits)
            count = len(samples) // channels
            return samples[: count * channels].reshape(count, channels), rate
        place += 8 + size
        place += size % 2 and data[place : place + 4] not in CHUNKS  # some writers leave the byte of padding out
    raise RunError("No data chunk found in WAV")


@kernel("DecodeWav")
def decode_wav(contents: Array, *, desired_channels: int = -1, desired_samples: int = -1) -> tuple[Array, Array]:
    """(samples, sample rate), cut or filled with silence to ``desired_samples``; the last channel is repeated."""
    samples, rate = read_wav(bytes(contents.reshape(()).item()))
    if desired_channels >= 0:
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
