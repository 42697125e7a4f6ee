"""SipHash-2-4, the keyed hash of StringToHashBucketStrong (Aumasson and Bernstein, 2012)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.murmur_hash import MASK
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.text.hashing import CATEGORIES


def _turned(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & MASK


def _round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = a + b & MASK
    b = _turned(b, 13) ^ a
    a = _turned(a, 32)
    c = c + d & MASK
    d = _turned(d, 16) ^ c
    a = a + d & MASK
    d = _turned(d, 21) ^ a
    c = c + b & MASK
    b = _turned(b, 17) ^ c
    return a, b, _turned(c, 32), d


@lru_cache(maxsize=CATEGORIES)
def sip_hash(data: bytes, first: int, second: int) -> int:
    """The 64-bit hash of ``data`` under the key of these two 64-bit numbers."""
    state = (
        first ^ 0x736F6D6570736575,
        second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261,
        second ^ 0x7465646279746573,
    )
    whole = len(data) // 8 * 8
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", data[:whole] + last):
        a, b, c, d = state
        a, b, c, d = _round(*_round(a, b, c, d ^ word))
        state = (a ^ word, b, c, d)
    a, b, c, d = state
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@kernel("StringToHashBucketStrong")
def string_to_hash_bucket_strong(input: Array, *, num_buckets: int, key: Sequence[int]) -> Array:
    """The keyed hash of each text modulo ``num_buckets``; ``key`` is two numbers."""
    if num_buckets < 1:
        raise RunError(f"num_buckets must be 1 or more, not {num_buckets}")
    if len(key) != 2:
        raise RunError(f"Key must have 2 elements, not {len(key)}")
    first, second = (part & MASK for part in key)
    found = [sip_hash(item, first, second) % num_buckets for item in input.ravel().tolist()]
    return np.asarray(np.array(found, np.int64).reshape(input.shape))
