"""Nearest neighbours of vectors: exact with NumPy, approximate with hnswlib where there are very many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array

MOST_EXACT = 100_000
"""With more vectors a search goes through a graph of neighbours (hnswlib)."""
BREADTH = 100
"""Candidates that a search in the graph keeps, at least; twice as many as are asked for."""
BLOCK = 1 << 22  # numbers of likenesses at a time


class Neighbours:
    """Vectors that can be asked for the nearest of a vector, by the cosine between them.

    Args:
        vectors: float [n, size].
        names: one a vector.
        exact: None for exact up to 100,000 vectors; True or False to have it so.

    Raises:
        UsageError: there are no vectors, not as many names, or a vector is not finite.
        MissingExtraError: there are too many and hnswlib is not installed.
    """

    def __init__(self, vectors: Array, names: Sequence[str], *, exact: bool | None = None) -> None:
        table = np.asarray(vectors, np.float32)
        if table.ndim != 2 or not len(table) or len(table) != len(names):
            raise UsageError(f"{list(table.shape)} vectors and {len(names)} names do not go together")
        if not np.isfinite(table).all():
            raise UsageError("a vector is not finite")
        self.names = tuple(names)
        self._table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
        self._index = None
        if not (len(table) <= MOST_EXACT if exact is None else exact):
            self._index = _index(self._table)

    def nearest(self, vectors: Array, count: int = 5) -> tuple[Array, Array]:
        """For each vector the places of the nearest ones, nearest first, and their cosines.

        Args:
            vectors: [m, size] or [size].
            count: how many, at most as many as there are.

        Returns:
            int64 [m, count] and float32 [m, count].

        Raises:
            UsageError: they have another size.
        """
        asked = np.atleast_2d(np.asarray(vectors, np.float32))
        if asked.ndim != 2 or asked.shape[1] != self._table.shape[1]:
            raise UsageError(f"vectors of {asked.shape[-1]} numbers are asked of ones of {self._table.shape[1]}")
        asked = asked / np.maximum(np.linalg.norm(asked, axis=1, keepdims=True), 1e-12)
        count = min(count, len(self._table))
        if self._index is not None:
            self._index.set_ef(max(BREADTH, 2 * count))
            places, apart = self._index.knn_query(asked, k=count)
            return places.astype(np.int64), (1 - apart).astype(np.float32)
        found, cosines = [], []
        rows = max(1, BLOCK // len(self._table))
        for start in range(0, len(asked), rows):
            like = asked[start : start + rows] @ self._table.T
            some = np.argpartition(-like, count - 1, axis=1)[:, :count]
            order = np.lexsort((some, -np.take_along_axis(like, some, 1)), axis=1)
            some = np.take_along_axis(some, order, 1)
            found.append(some)
            cosines.append(np.take_along_axis(like, some, 1))
        return np.concatenate(found).astype(np.int64), np.concatenate(cosines)

    def classify(self, vector: Array, count: int = 5) -> list[tuple[str, float]]:
        """The names of the nearest ones with their shares of the votes, most first; each vote weighs its cosine."""
        places, cosines = self.nearest(vector, count)
        votes: Counter[str] = Counter()
        for place, cosine in zip(places[0], cosines[0], strict=True):
            votes[self.names[int(place)]] += max(float(cosine), 0.0)  # type: ignore[assignment]
        total = sum(votes.values()) or 1.0
        return sorted(((name, weight / total) for name, weight in votes.items()), key=lambda vote: -vote[1])


def _index(table: Array) -> Any:
    try:
        import hnswlib
    except ImportError:
        raise MissingExtraError(
            f"{len(table):,} vectors are searched with hnswlib, which is not installed",
            hint="pip install 'pocketgraph[neighbours]'",
        ) from None
    made = hnswlib.Index(space="cosine", dim=table.shape[1])
    made.init_index(max_elements=len(table), ef_construction=200, M=16, random_seed=0)
    made.add_items(table)
    return made
