"""Lookup tables: made, filled, asked, listed. A table lives as long as the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.shape import SCALAR
from pocketgraph.kernels.arrays import Array, kept
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
        key_shape: the shape of one key, which comes last in arrays of keys.
        has_default_per_key: whether each key may have a default of its own.
        filled_with: copies of the arrays whose content it has; None where something else came in or went since.
    """

    def __init__(
        self, name: str, keys: DType, values: DType, shape: tuple[int, ...], frozen: bool,
        key_shape: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.keys = keys
        self.values = values
        self.shape = shape
        self.frozen = frozen
        self.key_shape = key_shape
        self.has_default_per_key = not frozen
        self.is_filled = False
        self.entries: dict[Any, Any] = {}
        self.filled_with: tuple[Array, Array] | None = None

    def checked(self, keys: Array) -> tuple[list[Any], tuple[int, ...]]:
        """(the keys as what a dict takes, how many they are in which order of axes)."""
        return keys.ravel().tolist(), keys.shape

    def insert(self, keys: Array, values: Array) -> None:
        """Raises RunError when there is not one value a key, or when a key of a frozen table gets a second value."""
        words, lead = self.checked(keys)
        if values.shape != lead + self.shape:
            raise RunError(f"table '{self.name}': {list(lead)} keys for values of shape {list(values.shape)}")
        rows = kept(values).reshape(len(words), *self.shape)
        for word, value in zip(words, rows, strict=True):
            known = self.entries.get(word) if self.frozen else None
            if known is not None and not np.array_equal(known, value):
                raise RunError(f"HashTable '{self.name}' has different value for same key: {word!r}")
            self.entries[word] = value
        self.is_filled = True
        self.filled_with = None

    def fill(self, keys: Array, values: Array) -> None:
        """Puts in what a table of the kind exported, in place of what is there; errors are those of ``insert``."""
        if not self.has(keys, values):
            self.entries.clear()
            self.insert(keys, values)
            self.filled_with = keys.copy(), values.copy()

    def has(self, keys: Array, values: Array) -> bool:
        """Whether such arrays filled it, to the last bit, and nothing changed since."""
        return self.filled_with is not None and all(map(_is_same, self.filled_with, (keys, values)))

    def find(self, keys: Array, default: Array) -> Array:
        """The values of the keys, the default for those that the table lacks.

        Args:
            keys: of any shape.
            default: one value of the table, or one for each key, of which all but a mutable table take the first.

        Raises:
            RunError: the table waits for being filled, or the defaults are of another shape.
        """
        if self.frozen and not self.is_filled:
            raise RunError(
                f"LookupTable '{self.name}' not initialized.",
                hint="run the graph's table initializer first; or put the file of words that fills it beside the "
                "model, and freeze that with freeze_graph",
            )
        words, lead = self.checked(keys)
        if default.shape not in (self.shape, lead + self.shape):
            shapes = f"{list(self.shape)} or {list(lead + self.shape)}"
            raise RunError(f"Expected shape {shapes} for default value, got {list(default.shape)}")
        rows = default.reshape(-1, *self.shape)
        missing = list(rows) if self.shape else rows.tolist()
        if len(missing) < len(words) or not self.has_default_per_key:
            missing = missing[:1] * len(words)
        return _array(list(map(self.entries.get, words, missing)), self.values, lead + self.shape)

    def remove(self, keys: Array) -> None:
        """Takes keys out; those that are not there are passed over."""
        for word in self.checked(keys)[0]:
            self.entries.pop(word, None)
        self.filled_with = None

    def listed(self) -> tuple[Array, Array]:
        """(keys, values), a row each, in the order of insertion."""
        pairs = list(self.entries.items())  # as they are at one moment
        words, found = [word for word, _ in pairs], [value for _, value in pairs]
        count = len(pairs)
        return _array(words, self.keys, (count, *self.key_shape)), _array(found, self.values, (count, *self.shape))


def _is_same(a: Array, b: Array) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return np.array_equal(a, b) if a.dtype.hasobject else a.tobytes() == b.tobytes()


def _array(values: list[Any], dtype: DType, shape: tuple[int, ...]) -> Array:
    return np.asarray(np.array(values, dtype=dtype.numpy).reshape(shape))


def named_table(
    context: Context, name: str, keys: DType, values: DType, make: Callable[[str], LookupTable]
) -> LookupTable:
    """The session's table of a name.

    Raises:
        RunError: it has other types.
    """
    table = context.shared("table", name, make)
    if (table.keys, table.values) != (keys, values):
        types = f"{keys}->{values} with {table.keys}->{table.values}"
        raise RunError(f"Conflicting key/value dtypes {types} for '{table.name}'")
    return table


@kernel(
    "HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
)  # fmt: skip
def hash_table(
    *, context: Context, key_dtype: DType, value_dtype: DType, shared_name: str = "",
    use_node_name_sharing: bool = False, value_shape: Shape = SCALAR,
) -> Value:  # fmt: skip
    """The table of this name, which lives as long as the session."""
    frozen = not context.node.op.startswith("Mutable")
    return named_table(
        context, "" if use_node_name_sharing else shared_name, key_dtype, value_dtype,
        lambda name: LookupTable(name, key_dtype, value_dtype, value_shape.known, frozen),
    )  # fmt: skip


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


kernel("LookupTableSize", "LookupTableSizeV2")(lambda table_handle: np.array(len(table_handle.entries), dtype=np.int64))
kernel("LookupTableExport", "LookupTableExportV2")(lambda table_handle: table_handle.listed())


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
    table_handle.filled_with = None
    return ()
