"""Lookup tables: made, filled, asked, listed. A table lives as long as the session."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.shape import SCALAR
from pocketgraph.kernels.arrays import Array, kept, strings
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.kernels.state.checkpoint_files import files_of, text
from pocketgraph.kernels.state.table_files import table_columns


class LookupTable:
    """A map from keys to values (numbers, strings, or arrays of one shape).

    Attributes:
        name: for errors.
        keys: the type of the keys.
        values: the type of the values.
        shape: the shape of one value.
        frozen: whether it is filled once only.
        filled_with: the arrays that it was initialized with; None for none.
    """

    def __init__(self, name: str, keys: DType, values: DType, shape: tuple[int, ...], frozen: bool) -> None:
        self.name = name
        self.keys = keys
        self.values = values
        self.shape = shape
        self.frozen = frozen
        self.is_filled = False
        self.entries: dict[Any, Any] = {}
        self.filled_with: tuple[Array, Array] | None = None

    def insert(self, keys: Array, values: Array) -> None:
        """Raises RunError when there is not one value a key, or when a key of a frozen table gets a second value."""
        if values.shape != keys.shape + self.shape:
            raise RunError(f"table '{self.name}': {list(keys.shape)} keys for values of shape {list(values.shape)}")
        rows = kept(values).reshape(-1, *self.shape) if self.shape else values.ravel()
        for key, value in zip(keys.ravel().tolist(), rows, strict=True):
            known = self.entries.get(key)
            if self.frozen and known is not None and not np.array_equal(known, value):
                raise RunError(f"HashTable '{self.name}' has different value for same key: {key!r}")
            self.entries[key] = value
        self.is_filled = True

    def fill(self, keys: Array, values: Array) -> None:
        """Puts in what a table of the kind exported, in place of what is there; errors are those of ``insert``."""
        self.entries.clear()
        self.insert(keys, values)

    def find(self, keys: Array, default: Array) -> Array:
        """The values of the keys, the default for those that the table lacks.

        Args:
            keys: of any shape.
            default: one value of the table.

        Raises:
            RunError: the table waits for being filled.
        """
        if self.frozen and not self.is_filled:
            raise RunError(
                f"LookupTable '{self.name}' not initialized.",
                hint="run the graph's table initializer first; or put the file of words that fills it beside the "
                "model, and freeze that with `pocketgraph freeze_graph`",
            )
        kind = self.values.numpy
        missing = default.reshape(self.shape) if self.shape else default.reshape(()).item()
        found = [self.entries.get(key, missing) for key in keys.ravel().tolist()]
        if kind.kind == "O":
            return strings(found, keys.shape)
        return np.asarray(np.array(found, dtype=kind).reshape(keys.shape + self.shape))

    def remove(self, keys: Array) -> None:
        """Takes keys out; those that are not there are passed over."""
        for key in keys.ravel().tolist():
            self.entries.pop(key, None)

    def listed(self) -> tuple[Array, Array]:
        """(keys, values) in the order of insertion."""
        words, found = self.pairs()
        count = len(words)
        is_text = self.keys.numpy.kind == "O"
        keys = strings(words, (count,)) if is_text else np.array(words, dtype=self.keys.numpy)
        if self.values.numpy.kind == "O":
            return keys, strings(found, (count,))
        return keys, np.array(found, dtype=self.values.numpy).reshape(count, *self.shape)

    def pairs(self) -> tuple[list[Any], list[Any]]:
        """The keys and their values, as they are at one moment."""
        pairs = list(self.entries.items())
        return [key for key, _ in pairs], [value for _, value in pairs]


def _table(
    context: Context, shared_name: str, own: bool, keys: DType, values: DType, shape: Shape, frozen: bool
) -> LookupTable:
    name = context.node.name if own or not shared_name else shared_name
    place = f"table/{name}"
    table = context.state.get(place)
    if not isinstance(table, LookupTable):
        table = context.state.setdefault(place, LookupTable(name, keys, values, shape.known, frozen))
    if (table.keys, table.values) != (keys, values):
        raise RunError(f"Conflicting key/value dtypes {keys}->{values} with {table.keys}->{table.values} for '{name}'")
    return table


@kernel("HashTable", "HashTableV2")
def hash_table(
    *,
    context: Context,
    key_dtype: DType,
    value_dtype: DType,
    shared_name: str = "",
    use_node_name_sharing: bool = False,
) -> Value:
    """A table that is filled once."""
    return _table(context, shared_name, use_node_name_sharing, key_dtype, value_dtype, SCALAR, True)


@kernel("MutableHashTable", "MutableHashTableV2")
def mutable_hash_table(
    *,
    context: Context,
    key_dtype: DType,
    value_dtype: DType,
    shared_name: str = "",
    use_node_name_sharing: bool = False,
) -> Value:
    return _table(context, shared_name, use_node_name_sharing, key_dtype, value_dtype, SCALAR, False)


@kernel("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2")
def mutable_hash_table_of_tensors(
    *,
    context: Context,
    key_dtype: DType,
    value_dtype: DType,
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    value_shape: Shape = SCALAR,
) -> Value:
    return _table(context, shared_name, use_node_name_sharing, key_dtype, value_dtype, value_shape, False)


@kernel("InitializeTable", "InitializeTableV2")
def initialize_table(table_handle: LookupTable, keys: Array, values: Array) -> tuple[()]:
    """Fills a table; one that these very arrays filled in an earlier step is left as it is."""
    if table_handle.filled_with is None or any(
        a is not b for a, b in zip(table_handle.filled_with, (keys, values), strict=True)
    ):
        table_handle.insert(keys, values)
        table_handle.filled_with = keys, values
    return ()


@kernel("LookupTableInsert", "LookupTableInsertV2")
def lookup_table_insert(table_handle: LookupTable, keys: Array, values: Array) -> tuple[()]:
    table_handle.insert(keys, values)
    return ()


@kernel("LookupTableFind", "LookupTableFindV2")
def lookup_table_find(table_handle: LookupTable, keys: Array, default_value: Array) -> Array:
    return table_handle.find(keys, default_value)


@kernel("LookupTableImport", "LookupTableImportV2")
def lookup_table_import(table_handle: LookupTable, keys: Array, values: Array) -> tuple[()]:
    table_handle.fill(keys, values)
    return ()


@kernel("LookupTableRemoveV2")
def lookup_table_remove(table_handle: LookupTable, keys: Array) -> tuple[()]:
    table_handle.remove(keys)
    return ()


@kernel("LookupTableSize", "LookupTableSizeV2")
def lookup_table_size(table_handle: LookupTable) -> Array:
    return np.array(len(table_handle.entries), dtype=np.int64)


@kernel("LookupTableExport", "LookupTableExportV2")
def lookup_table_export(table_handle: LookupTable) -> tuple[Array, Array]:
    return table_handle.listed()


@kernel("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
def initialize_table_from_text_file(
    table_handle: LookupTable,
    filename: Array,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int = -1,
    delimiter: str = "\t",
    context: Context,
) -> tuple[()]:
    """Keys and values from columns of a text file; -2 is the whole line, -1 the line's number. An engine runs this op
    only where reading files is allowed."""
    path = text(filename)
    keys, values = table_columns(
        files_of(context).read(path),
        (table_handle.keys, table_handle.values),
        (key_index, value_index),
        size=vocab_size,
        delimiter=delimiter.encode(),
        where=path,
    )
    table_handle.entries.update(zip(keys.tolist(), values.tolist(), strict=True))
    table_handle.is_filled = True
    return ()
