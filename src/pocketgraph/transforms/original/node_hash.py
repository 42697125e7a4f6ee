"""The 64-bit hash of a node by which the original tool orders nodes while it merges them.

Source: HashNodeDef in tensorflow/tools/graph_transforms/transform_utils.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pocketgraph.formats.attr_value import encode_attr
from pocketgraph.graph import Node, parse_ref
from pocketgraph.kernels.murmur_hash import GOLDEN_RATIO, MASK, hash64

SIZES = (3, 7, 17, 37, 79, 167, 337, 677, 1361, 2729, 5471, 10949)
"""Buckets of GNU's std::unordered_set as it grows; it grows before it would hold as many names as it has buckets."""


def node_hash(node: Node, *, with_name: bool = True) -> int:
    """The hash over op, name (or "" in its place), inputs with ports, device, attribute values by sorted names."""
    result: int | None = None
    for part in _parts(node, with_name):
        other = hash64(part)
        if result is None:
            result = other
        else:
            result ^= (other + GOLDEN_RATIO + (result << 10) + (result >> 4)) & MASK
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
        _insert(chain, (name, hash64(name.encode())), size)
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
