"""Strings hashed into buckets: FarmHash's Fingerprint64, which TensorFlow's feature columns use.

Source of the function: the farmhash and cityhash papers' published description by Geoff Pike.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.murmur_hash import MASK, hash64
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.text.strings import as_string

K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
CATEGORIES = 1 << 14  # texts whose fingerprints are kept: some 3 MB at most


def _word(data: bytes, place: int) -> int:
    value: int = struct.unpack_from("<Q", data, place)[0]
    return value


def _turned(value: int, by: int) -> int:
    value &= MASK
    return (value >> by | value << (64 - by)) & MASK


def _mixed(value: int) -> int:
    value &= MASK
    return value ^ value >> 47


def _paired(u: int, v: int, mul: int) -> int:
    a = _mixed(((u ^ v) & MASK) * mul)
    b = _mixed(((v ^ a) & MASK) * mul)
    return b * mul & MASK


def _short(data: bytes) -> int:
    size = len(data)
    mul = K2 + size * 2
    if size >= 8:
        a, b = _word(data, 0) + K2, _word(data, size - 8)
        return _paired(_turned(b, 37) * mul + a & MASK, (_turned(a, 25) + b) * mul & MASK, mul)
    if size >= 4:
        first, last = struct.unpack_from("<I", data)[0], struct.unpack_from("<I", data, size - 4)[0]
        return _paired(size + (first << 3), last, mul)
    if size:
        y, z = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return _mixed(y * K2 ^ z * K0) * K2 & MASK
    return K2


def _medium(data: bytes) -> int:
    size = len(data)
    mul = K2 + size * 2
    a, b = _word(data, 0) * (K1 if size <= 32 else K2), _word(data, 8)
    c, d = _word(data, size - 8) * mul, _word(data, size - 16) * K2
    y = _turned(a + b, 43) + _turned(c, 30) + d & MASK
    z = _paired(y, a + _turned(b + K2, 18) + c & MASK, mul)
    if size <= 32:
        return z
    e, f = _word(data, 16) * mul, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * mul, (z + _word(data, size - 24)) * mul
    return _paired(_turned(e + f, 43) + _turned(g, 30) + h & MASK, e + _turned(f + a, 18) + g & MASK, mul)


def _weak(data: bytes, place: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(data, place + 8 * i) for i in range(4))
    a += w
    b = _turned(b + a + z, 21)
    c = a
    a += x + y
    b += _turned(a, 44)
    return a + z & MASK, b + c & MASK


def fingerprint64(data: bytes) -> int:
    """The 64-bit fingerprint of a string; that of a short one, which is mostly a category, is kept."""
    return _of_category(data) if len(data) <= 64 else _long(data)


@lru_cache(maxsize=CATEGORIES)
def _of_category(data: bytes) -> int:
    return _short(data) if len(data) <= 16 else _medium(data)


def _long(data: bytes) -> int:
    size = len(data)
    x, y = 81, 81 * K1 + 113 & MASK
    z = _mixed(y * K2 + 113) * K2 & MASK
    v, w = (0, 0), (0, 0)
    x = x * K2 + _word(data, 0) & MASK
    last = (size - 1) // 64 * 64
    mul, place = K1, 0
    while True:
        final = place == last
        if final:
            mul = K1 + ((z & 0xFF) << 1)
            place = size - 64
            w = (w[0] + ((size - 1) & 63), w[1])
            v = (v[0] + w[0], v[1])
            w = (w[0] + v[0], w[1])
        x = _turned(x + y + v[0] + _word(data, place + 8), 37) * mul
        y = _turned(y + v[1] + _word(data, place + 48), 42) * mul
        x = (x ^ w[1] * (9 if final else 1)) & MASK
        y = y + v[0] * (9 if final else 1) + _word(data, place + 40) & MASK
        z = _turned(z + w[0], 33) * mul & MASK
        v = _weak(data, place, v[1] * mul, x + w[0])
        w = _weak(data, place + 32, z + w[1], y + _word(data, place + 16))
        z, x = x, z
        if final:
            break
        place += 64
    first = _paired(v[0], w[0], mul) + _mixed(y) * K0 + z & MASK
    return _paired(first, _paired(v[1], w[1], mul) + x & MASK, mul)


@kernel("Fingerprint")
def fingerprint(data: Array, method: Array) -> Array:
    """uint8 (rows, 8): FarmHash's fingerprint of each row's bytes; of several texts, of their own fingerprints."""
    if method.item() != b"farmhash64":
        raise RunError(f"Unsupported fingerprint method {method.item()!r}; farmhash64 is the only one")
    if data.ndim < 1:
        raise RunError("data must have a first axis")
    if data.dtype == object:
        own = np.array([fingerprint64(item) for item in data.ravel().tolist()], np.uint64).reshape(data.shape)
        if data.size == len(data):
            return np.asarray(own.astype("<u8").view(np.uint8).reshape(-1, 8))
        data = own
    rows = [fingerprint64(row.tobytes()) for row in data]
    return np.array(rows, "<u8").view(np.uint8).reshape(-1, 8)


def _register(op: str, digest: Callable[[bytes], int]) -> Callable[..., Array]:
    @kernel(op)
    def bucket(texts: Array, *, num_buckets: int) -> Array:
        if num_buckets < 1:
            raise RunError(f"num_buckets must be 1 or more, not {num_buckets}")
        found = np.array([digest(item) % num_buckets for item in texts.ravel().tolist()], dtype=np.int64)
        return np.asarray(found.reshape(texts.shape))

    return bucket


_register("StringToHashBucket", hash64)
string_to_hash_bucket_fast = _register("StringToHashBucketFast", fingerprint64)


@kernel("_TensorToHashBucketFast")
def tensor_to_hash_bucket_fast(input: Array, *, num_buckets: int) -> Array:
    """AsString of integers, then StringToHashBucketFast."""
    return string_to_hash_bucket_fast(as_string(input), num_buckets=num_buckets)
