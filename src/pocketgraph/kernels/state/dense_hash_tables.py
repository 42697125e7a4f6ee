"""Lookup tables with a key that means "empty", and tables without a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.shape import SCALAR
from pocketgraph.kernels.arrays import Array, kept, strings
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.kernels.state.lookup_tables import LookupTable


class DenseTable(LookupTable):
    """A table whose keys may be vectors; two of them, the empty and the deleted one, cannot be used.

    Attributes:
        key_shape: the shape of one key.
        forbidden: the keys that cannot be used.
    """

    def __init__(
        self, name: str, keys: DType, values: DType, shape: tuple[int, ...], key_shape: tuple[int, ...]
    ) -> None:
        super().__init__(name, keys, values, shape, frozen=False)
        self.key_shape = key_shape
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

    def insert(self, keys: Array, values: Array) -> None:
        """Puts values in; the shape of a key comes last in ``keys``."""
        words, lead = self.checked(keys)
        if values.shape != lead + self.shape:
            raise RunError(f"table '{self.name}': {list(lead)} keys for values of shape {list(values.shape)}")
        for word, value in zip(words, kept(values).reshape(len(words), *self.shape), strict=True):
            self.entries[word] = value
        self.is_filled = True

    def fill(self, keys: Array, values: Array) -> None:
        """As LookupTable.fill; TensorFlow exports all buckets, a row each, with the keys that stand for nothing."""
        used = used_buckets(keys, [np.array(word, self.keys.numpy) for word in self.forbidden])
        self.entries.clear()
        self.insert(keys[used].reshape(-1, *self.key_shape), values[used].reshape(-1, *self.shape))

    def find(self, keys: Array, default: Array) -> Array:
        """As LookupTable.find, with keys of the key shape."""
        words, lead = self.checked(keys)
        kind = self.values.numpy
        missing = default.reshape(self.shape) if self.shape else default.reshape(()).item()
        found = [self.entries.get(word, missing) for word in words]
        if kind.kind == "O":
            return strings(found, lead)
        return np.array(found, dtype=kind).reshape(lead + self.shape)

    def remove(self, keys: Array) -> None:
        """Takes keys out; those that are not there are passed over."""
        for word in self.checked(keys)[0]:
            self.entries.pop(word, None)

    def listed(self) -> tuple[Array, Array]:
        """All keys and their values, a row each."""
        if not self.key_shape:
            return super().listed()
        words, found = self.pairs()
        rows = np.array(words, dtype=self.keys.numpy).reshape(len(words), *self.key_shape)
        return rows, np.array(found, dtype=self.values.numpy).reshape(len(words), *self.shape)


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
) -> DenseTable:
    if buckets < 4 or buckets & (buckets - 1):
        raise RunError(f"Number of buckets must be at least 4 and a power of 2, got: {buckets}")
    if not 0 < load < 1:
        raise RunError(f"max_load_factor must be between 0 and 1, got: {load}")
    table = DenseTable(name, keys, values, shape.known, key.shape)
    table.forbid(key, "empty")
    if deleted is not None:
        table.forbid(deleted, "deleted")
    return table


@kernel("MutableDenseHashTable")
def mutable_dense_hash_table(
    empty_key: Array,
    *,
    context: Context,
    key_dtype: DType,
    value_dtype: DType,
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    value_shape: Shape = SCALAR,
    initial_num_buckets: int = 131072,
    max_load_factor: float = 0.8,
) -> Value:
    """The same without a deleted key, as TensorFlow 1.0 had it."""
    return _shared(
        context, empty_key, None, key_dtype, value_dtype, value_shape, initial_num_buckets, max_load_factor,
        "" if use_node_name_sharing else shared_name,
    )  # fmt: skip


@kernel("MutableDenseHashTableV2")
def mutable_dense_hash_table_v2(
    empty_key: Array,
    deleted_key: Array,
    *,
    context: Context,
    key_dtype: DType,
    value_dtype: DType,
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    value_shape: Shape = SCALAR,
    initial_num_buckets: int = 131072,
    max_load_factor: float = 0.8,
) -> Value:
    """The table of this name, which lives as long as the session."""
    return _shared(
        context, empty_key, deleted_key, key_dtype, value_dtype, value_shape, initial_num_buckets, max_load_factor,
        "" if use_node_name_sharing else shared_name,
    )  # fmt: skip


def _shared(
    context: Context, key: Array, deleted: Array | None, keys: DType, values: DType, shape: Shape, buckets: int,
    load: float, shared_name: str,
) -> DenseTable:  # fmt: skip
    name = shared_name or context.node.name
    place = f"table/{name}"
    table = context.state.get(place)
    if not isinstance(table, DenseTable):
        made = _made(name, key, deleted, keys, values, shape, buckets, load)
        table = context.state.setdefault(place, made)
    if (table.keys, table.values) != (keys, values):
        raise RunError(f"Conflicting key/value dtypes of the table '{name}'")
    return table


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
