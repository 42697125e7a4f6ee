"""The 64-bit hash of a node by which the original tool orders nodes while it merges them.

Source: tensorflow/core/lib/hash/hash.cc (MurmurHash64A with the seed 0xDECAFCAFFE) and HashNodeDef in
tensorflow/tools/graph_transforms/transform_utils.cc.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from pocketgraph.formats.attr_value import encode_attr
from pocketgraph.graph import Node, parse_ref

SEED = 0xDECAFCAFFE
SHORT = 128  # bytes; NumPy pays for more only
M = 0xC6A4A7935BD1E995
WORD = (1 << 64) - 1


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
