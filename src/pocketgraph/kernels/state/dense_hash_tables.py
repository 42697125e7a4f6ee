"""Lookup tables with a key that means "empty", and tables without a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.shape import SCALAR
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.kernels.state.lookup_tables import LookupTable, named_table


class _DenseTable(LookupTable):
    """A table whose keys may be vectors; two of them, the empty and the deleted one, cannot be used.

    Attributes:
        forbidden: the keys that cannot be used.
    """

    def __init__(
        self, name: str, keys: DType, values: DType, shape: tuple[int, ...], key_shape: tuple[int, ...]
    ) -> None:
        super().__init__(name, keys, values, shape, frozen=False, key_shape=key_shape)
        self.has_default_per_key = False
        self.forbidden: dict[Any, str] = {}

    def forbid(self, key: Array, what: str) -> None:
        """Keeps a key from being used: it marks an empty or a deleted place."""
        if key.shape != self.key_shape:
            raise RunError(f"table '{self.name}': a key of shape {list(key.shape)}, not {list(self.key_shape)}")
        word = self._words(key)[0]
        if word in self.forbidden:
            raise RunError(f"Empty and deleted keys cannot be equal (table '{self.name}')")
        self.forbidden[word] = what

    def _words(self, keys: Array) -> list[Any]:
        """The keys as what a dict takes; of vectors, their elements."""
        if not self.key_shape:
            return list(keys.ravel().tolist())
        return [tuple(row) for row in keys.reshape(-1, int(np.prod(self.key_shape))).tolist()]

    def checked(self, keys: Array) -> tuple[list[Any], tuple[int, ...]]:
        """(the keys, how many they are in which order of axes).

        Raises:
            RunError: they have another shape, or one of them stands for nothing.
        """
        count = keys.ndim - len(self.key_shape)
        if count < 0 or keys.shape[count:] != self.key_shape:
            raise RunError(f"Expected key shape {list(self.key_shape)} got {list(keys.shape)} (table '{self.name}')")
        words = self._words(keys)
        for word in words:
            if word in self.forbidden:
                what = self.forbidden[word]
                raise RunError(f"Using the {what}_key as a table key is not allowed (table '{self.name}')")
        return words, keys.shape[:count]

    def fill(self, keys: Array, values: Array) -> None:
        """As LookupTable.fill; TensorFlow exports all buckets, a row each, with the keys that stand for nothing."""
        used = used_buckets(keys, [np.array(word, self.keys.numpy) for word in self.forbidden])
        self.entries.clear()
        self.insert(keys[used].reshape(-1, *self.key_shape), values[used].reshape(-1, *self.shape))


def used_buckets(keys: Array, unused: Sequence[Array]) -> Array:
    """Which rows of exported keys are keys.

    Args:
        keys: an array with a row a bucket.
        unused: the keys that mark empty and deleted buckets.

    Returns:
        A bool a row.
    """
    rows = keys.reshape(len(keys), -1) if keys.size else keys.reshape(len(keys), 0)
    used = np.ones(len(keys), dtype=bool)
    for key in unused:
        used &= ~np.all(rows == key.reshape(1, -1), axis=1)
    return used


def _made(
    name: str, key: Array, deleted: Array | None, keys: DType, values: DType, shape: Shape, buckets: int, load: float
) -> _DenseTable:
    if buckets < 4 or buckets & (buckets - 1):
        raise RunError(f"Number of buckets must be at least 4 and a power of 2, got: {buckets}")
    if not 0 < load < 1:
        raise RunError(f"max_load_factor must be between 0 and 1, got: {load}")
    table = _DenseTable(name, keys, values, shape.known, key.shape)
    table.forbid(key, "empty")
    if deleted is not None:
        table.forbid(deleted, "deleted")
    return table


@kernel("MutableDenseHashTable", "MutableDenseHashTableV2")
def mutable_dense_hash_table(
    empty_key: Array,
    *deleted_key: Array,
    context: Context,
    key_dtype: DType,
    value_dtype: DType,
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    value_shape: Shape = SCALAR,
    initial_num_buckets: int = 131072,
    max_load_factor: float = 0.8,
) -> Value:
    """The table of this name, which lives as long as the session; TensorFlow 1.0 had no ``deleted_key``."""
    how = value_shape, initial_num_buckets, max_load_factor
    return named_table(
        context, "" if use_node_name_sharing else shared_name, key_dtype, value_dtype,
        lambda name: _made(name, empty_key, deleted_key[0] if deleted_key else None, key_dtype, value_dtype, *how),
    )  # fmt: skip


@kernel("AnonymousMutableDenseHashTable")
def anonymous_mutable_dense_hash_table(
    empty_key: Array, deleted_key: Array, *, context: Context, key_dtype: DType, value_dtype: DType,
    value_shape: Shape = SCALAR, initial_num_buckets: int = 131072, max_load_factor: float = 0.8,
) -> Value:  # fmt: skip
    """A table of its own for each run of the node."""
    return _made(
        context.node.name, empty_key, deleted_key, key_dtype, value_dtype, value_shape, initial_num_buckets,
        max_load_factor,
    )  # fmt: skip


@kernel("AnonymousHashTable", "AnonymousMutableHashTable")
def anonymous_hash_table(*, context: Context, key_dtype: DType, value_dtype: DType) -> Value:
    """A table of its own for each run of the node."""
    return LookupTable(context.node.name, key_dtype, value_dtype, (), frozen=context.node.op == "AnonymousHashTable")


@kernel("AnonymousMutableHashTableOfTensors")
def anonymous_mutable_hash_table_of_tensors(
    *, context: Context, key_dtype: DType, value_dtype: DType, value_shape: Shape = SCALAR
) -> Value:
    return LookupTable(context.node.name, key_dtype, value_dtype, value_shape.known, frozen=False)
