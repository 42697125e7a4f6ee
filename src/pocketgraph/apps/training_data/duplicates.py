"""Photos that show the same: equal files, and those whose hashes or vectors are nearly alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pocketgraph.graph.groups import DisjointSets
from pocketgraph.graph.tensor import Array

MOST_BITS = 8
"""Of the 64 of a perceptual hash that near duplicates differ in, at most."""
LEAST_COSINE = 0.97
"""Between the vectors of near duplicates, at least, where their hashes are not far apart either."""
FAR_BITS = 14
BLOCK = 1 << 22  # products at a time


def near_pairs(frequencies: Array, vectors: Array | None) -> list[tuple[int, int]]:
    """The pairs of photos that are nearly the same, each once, the smaller place first.

    Args:
        frequencies: the perceptual hashes, int8 [n, 64] of -1 and 1.
        vectors: what a model makes of them, float32 [n, size]; None for none.
    """
    signs = frequencies.astype(np.float32)
    unit = None
    if vectors is not None:
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    found: list[tuple[int, int]] = []
    rows = max(1, BLOCK // max(1, len(signs)))
    for start in range(0, len(signs), rows):
        bits = (64 - signs[start : start + rows] @ signs[start:].T) / 2
        near = bits <= MOST_BITS
        if unit is not None:
            near |= (unit[start : start + rows] @ unit[start:].T >= LEAST_COSINE) & (bits <= FAR_BITS)
        first, second = np.nonzero(np.triu(near, 1))
        found += [(int(a) + start, int(b) + start) for a, b in zip(first, second, strict=True)]
    return found


def equal_pairs(digests: Sequence[str]) -> list[tuple[int, int]]:
    """The places with the same digest, each with the first that has it."""
    first: dict[str, int] = {}
    return [(first[digest], i) for i, digest in enumerate(digests) if first.setdefault(digest, i) != i]


def groups_of(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """What pairs join, as sorted groups."""
    pairs = list(pairs)
    joined = DisjointSets(sorted({place for pair in pairs for place in pair}))
    for pair in pairs:
        joined.join(*pair)
    return joined.groups()
