"""The 64-bit hash of a node by which the original tool orders nodes while it merges them.

Source: tensorflow/core/lib/hash/hash.cc (MurmurHash64A with the seed 0xDECAFCAFFE) and HashNodeDef in
tensorflow/tools/graph_transforms/transform_utils.cc.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from pocketgraph.formats.attr_value import encode_attr
from pocketgraph.graph import Node, parse_ref

SEED = 0xDECAFCAFFE
SHORT = 128  # bytes; NumPy pays for more only
M = 0xC6A4A7935BD1E995
WORD = (1 << 64) - 1
SIZES = (3, 7, 17, 37, 79, 167, 337, 677, 1361, 2729, 5471, 10949)
"""Buckets of GNU's std::unordered_set as it grows; it grows before it would hold as many names as it has buckets."""


def node_hash(node: Node, *, with_name: bool = True) -> int:
    """The hash over op, name (or "" in its place), inputs with ports, device, attribute values by sorted names."""
    result: int | None = None
    for part in _parts(node, with_name):
        other = bytes_hash(part)
        if result is None:
            result = other
        else:
            result ^= (other + 0x9E3779B97F4A7800 + (result << 10) + (result >> 4)) & WORD
    assert result is not None
    return result


def _parts(node: Node, with_name: bool) -> Iterator[bytes]:
    yield node.op.encode()
    yield node.name.encode() if with_name else b""
    for text in node.inputs:
        ref = parse_ref(text)
        yield (f"^{ref.name}:0" if ref.control else f"{ref.name}:{ref.port}").encode()
    yield node.device.encode()
    for key in sorted(node.attrs):
        yield b"".join(encode_attr(node.attrs[key]))


def bytes_hash(data: bytes) -> int:
    """MurmurHash64A."""
    return _short_hash(data) if len(data) <= SHORT else _hash(data)


def _hash(data: bytes) -> int:
    h = SEED ^ (len(data) * M & WORD)
    whole = len(data) & ~7
    for k in _mixed(data[:whole]):
        h = (h ^ k) * M & WORD
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * M & WORD
    h = (h ^ h >> 47) * M & WORD
    return h ^ h >> 47


def _mixed(data: bytes) -> list[int]:
    """Each word of eight bytes as it goes into the hash."""
    if len(data) <= SHORT:
        products = [word * M & WORD for word in struct.unpack(f"<{len(data) // 8}Q", data)]
        return [(k ^ k >> 47) * M & WORD for k in products]
    words = np.frombuffer(data, "<u8").astype(np.uint64) * np.uint64(M)
    mixed: list[int] = ((words ^ words >> np.uint64(47)) * np.uint64(M)).tolist()
    return mixed


_short_hash = lru_cache(maxsize=4096)(_hash)  # ops, devices and most attributes come again and again


def hash_order(names: Iterable[str]) -> list[str]:
    """The names in the order of a std::unordered_set of TensorFlow's 64-bit string hash, filled one after the other.

    By it the original tool writes the inputs.

    The set is one chain. A name goes in front of the first name of its bucket, or in front of the chain when its bucket
    is empty; growing chains all names anew in their order.
    """
    wanted = dict.fromkeys(names)
    chain: list[tuple[str, int]] = []
    sizes = iter(SIZES)
    size = next(sizes)
    for name in wanted:
        if len(chain) + 1 >= size and size < SIZES[-1]:
            size = next(sizes)
            chain = _chained(chain, size)
        _insert(chain, (name, bytes_hash(name.encode())), size)
    return [name for name, _ in chain]


def _chained(entries: Iterable[tuple[str, int]], size: int) -> list[tuple[str, int]]:
    chain: list[tuple[str, int]] = []
    for entry in entries:
        _insert(chain, entry, size)
    return chain


def _insert(chain: list[tuple[str, int]], entry: tuple[str, int], size: int) -> None:
    bucket = entry[1] % size
    place = next((i for i, (_, value) in enumerate(chain) if value % size == bucket), 0)
    chain.insert(place, entry)
