"""The 64-bit hash of a node by which the original tool orders nodes while it merges them.

Source: tensorflow/core/lib/hash/hash.cc (MurmurHash64A with the seed 0xDECAFCAFFE) and HashNodeDef in
tensorflow/tools/graph_transforms/transform_utils.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pocketgraph.formats.attr_value import encode_attr
from pocketgraph.graph import Node, parse_ref

SEED = 0xDECAFCAFFE
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
    h = SEED ^ (len(data) * M & WORD)
    whole = len(data) & ~7
    words = np.frombuffer(data, "<u8", whole // 8).astype(np.uint64) * np.uint64(M)
    for k in ((words ^ words >> np.uint64(47)) * np.uint64(M)).tolist():
        h = (h ^ k) * M & WORD
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * M & WORD
    h = (h ^ h >> 47) * M & WORD
    return h ^ h >> 47
