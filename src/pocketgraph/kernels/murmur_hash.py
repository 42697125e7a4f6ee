"""MurmurHash64A by Austin Appleby (public domain) as TensorFlow's Hash64 has it.

Source: tensorflow/core/lib/hash/hash.cc.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

SEED = 0xDECAFCAFFE
MULTIPLIER = 0xC6A4A7935BD1E995
GOLDEN_RATIO = 0x9E3779B97F4A7800  # of 64 bits, as Hash64Combine has it
SHORT = 128  # bytes; NumPy pays for more only
MASK = (1 << 64) - 1


def hash64(data: bytes) -> int:
    """The hash of some bytes, 64 bits."""
    return _short_hash(data) if len(data) <= SHORT else _hash(data)


def _hash(data: bytes) -> int:
    h = SEED ^ (len(data) * MULTIPLIER & MASK)
    whole = len(data) & ~7
    for k in _mixed(data[:whole]):
        h = (h ^ k) * MULTIPLIER & MASK
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & MASK
    h = (h ^ h >> 47) * MULTIPLIER & MASK
    return h ^ h >> 47


def _mixed(data: bytes) -> list[int]:
    """Each word of eight bytes as it goes into the hash."""
    if len(data) <= SHORT:
        products = [word * MULTIPLIER & MASK for word in struct.unpack(f"<{len(data) // 8}Q", data)]
        return [(k ^ k >> 47) * MULTIPLIER & MASK for k in products]
    words = np.frombuffer(data, "<u8").astype(np.uint64) * np.uint64(MULTIPLIER)
    mixed: list[int] = ((words ^ words >> np.uint64(47)) * np.uint64(MULTIPLIER)).tolist()
    return mixed


_short_hash = lru_cache(maxsize=4096)(_hash)  # ops, devices and most attributes come again and again
