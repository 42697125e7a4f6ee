"""How WAV files hold samples: whole numbers of 8 to 32 bits, floats, and the two codes of telephones."""

from __future__ import annotations

import struct

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array

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
