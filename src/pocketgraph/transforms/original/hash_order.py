"""The order in which a hash set gives names back, by which the original tool writes the inputs."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.transforms.original.node_hash import bytes_hash

SIZES = (3, 7, 17, 37, 79, 167, 337, 677, 1361, 2729, 5471, 10949)
"""Buckets of GNU's std::unordered_set as it grows; it grows before it would hold as many names as it has buckets."""


def hash_order(names: Iterable[str]) -> list[str]:
    """The names in the order of a std::unordered_set of TensorFlow's 64-bit string hash, filled one after the other.

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
