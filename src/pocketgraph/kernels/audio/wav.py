"""WAV files, read and written: whole numbers of 8 to 32 bits, floats, and the two codes of telephones."""

from __future__ import annotations

import struct

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, integer, reserve, strings
from pocketgraph.kernels.quantized.eight_bit_arithmetic import half_away
from pocketgraph.kernels.registry import kernel

PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
"""The numbers of formats. The last one tells the real format further behind."""
STREAMED = 0x7FFFF000
"""The least size, in bytes, that programs announce who do not know yet how much they will write (into a pipe)."""


def format_of(chunk: bytes) -> int:
    """The number of the format that a ``fmt`` chunk of 16 bytes or more tells."""
    (tag,) = struct.unpack_from("<H", chunk)
    if tag == EXTENSIBLE and len(chunk) >= 26:
        (tag,) = struct.unpack_from("<H", chunk, 24)
    return int(tag)


def samples_of(body: bytes, form: int, bits: int) -> Array:
    """The samples in order, float32 [count] from -1 to 1; what is left of a broken last one is left out.

    Raises:
        RunError: samples of this format are not read.
    """
    if (form, bits) not in READERS:
        raise RunError(f"samples of {bits} bits in the WAV format {form} are not read")
    width = bits // 8
    codes = np.frombuffer(body, np.uint8, len(body) // width * width)
    return READERS[form, bits](codes).astype(np.float32, copy=False)


def _eight_bits(codes: Array) -> Array:
    samples: Array = (codes.astype(np.float32) - np.float32(128)) / np.float32(128)
    return samples


def _sixteen_bits(codes: Array) -> Array:
    samples: Array = codes.view("<i2").astype(np.float32)
    samples *= np.float32(1 / 32768)  # a power of two: the same as dividing
    return samples


def _whole_numbers(codes: Array, width: int) -> Array:
    wide = np.zeros((len(codes) // width, 4), np.uint8)
    wide[:, 4 - width :] = codes.reshape(-1, width)
    return wide.view("<i4")[:, 0] / 2.0**31


def _floats(codes: Array, dtype: str) -> Array:
    samples: Array = np.clip(np.nan_to_num(codes.view(dtype), nan=0.0), -1, 1)
    return samples


def _mu_law(codes: Array) -> Array:
    """ITU-T G.711: a sign, three bits of the exponent and four of the fraction, all inverted."""
    code = ~codes
    size = ((((code & 15).astype(np.int32) << 3) + 132) << (code >> 4 & 7)) - 132
    return np.where(code & 128, -size, size) / 32768


def _a_law(codes: Array) -> Array:
    """ITU-T G.711: as above, with every second bit inverted, and the smallest values evenly spaced."""
    code = codes ^ 0x55
    exponent, fraction = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32) << 4
    size = np.where(exponent == 0, fraction + 8, (fraction + 0x108) << np.maximum(exponent - 1, 0))
    return np.where(code & 128, size, -size) / 32768


READERS = {
    (PCM, 8): _eight_bits,
    (PCM, 16): _sixteen_bits,
    (PCM, 24): lambda codes: _whole_numbers(codes, 3),
    (PCM, 32): lambda codes: _whole_numbers(codes, 4),
    (FLOAT, 32): lambda codes: _floats(codes, "<f4"),
    (FLOAT, 64): lambda codes: _floats(codes, "<f8"),
    (MU_LAW, 8): _mu_law,
    (A_LAW, 8): _a_law,
}
"""What makes samples of bytes, by the format's number and the bits of a sample."""


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
            form, channels, rate, per_second, per_sample, bits = struct.unpack_from("<HHIIHH", body)
            if any_format:
                form = format_of(body)
            elif form != PCM:
                raise RunError(f"Bad audio format for WAV: Expected 1 (PCM), but got {form}")
            if channels < 1 or not (any_format or bits == 16):
                raise RunError(f"Can only read 16-bit WAV files, but received {bits} bits in {channels} channels")
            if not any_format and (per_sample, per_second) != (2 * channels, rate * per_sample):
                raise RunError(
                    f"Bad bytes in WAV header: Expected {2 * channels} a sample and {2 * channels * rate} a second, "
                    f"but got {per_sample} and {per_second}"
                )
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
