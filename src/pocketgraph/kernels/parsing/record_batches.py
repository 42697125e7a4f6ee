"""Encoded Examples that one op parses, a feature of a record at a time, and the features that an op wants of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.parsing.column_results import RecordColumn
from pocketgraph.kernels.parsing.example_records import LIST_NAMES, features_of, kind_of, values_of
from pocketgraph.protobuf.wire import WireError

UNKNOWN = b"<unknown>"  # the name of a record that has none
MOST_SHOWN = 80  # bytes of a record that an error repeats


@dataclass(frozen=True)
class Batch:
    """The records that one op parses, and how its errors call them.

    Attributes:
        records: the features of each record.
        names: a name for each record; empty when they have none.
        single: one record that is no batch: its errors name no record, its results have no batch axis.
        emptied: for each record, the keys whose last Feature holds nothing. A batch's sparse and ragged features take
            no value of such a key, which dense ones and a single record take from an earlier one.
    """

    records: tuple[dict[bytes, bytes], ...]
    names: tuple[bytes, ...]
    single: bool
    emptied: tuple[frozenset[bytes], ...] = ()

    def place(self, index: int, key: bytes) -> str:
        """What stands in front of an error about one feature."""
        if self.single:
            return f"Key: {shown(key)}.  "
        return f"Name: {self.name(index)}, Key: {shown(key)}, Index: {index}.  "

    def name(self, index: int) -> str:
        """What messages call a record."""
        return shown(self.names[index] if self.names else UNKNOWN)

    def column(self, key: bytes, dtype: DType, *, dense: bool) -> RecordColumn:
        """A feature of all records.

        Raises:
            ValueError: one's values are of another type, or no list.
        """
        return RecordColumn.of([self._values(i, key, dtype, dense) for i in range(len(self.records))], dtype)

    def _values(self, index: int, key: bytes, dtype: DType, dense: bool) -> Array | None:
        feature = self.records[index].get(key)
        if feature is None or (self.emptied and not dense and key in self.emptied[index]):
            return None
        place = self.place(index, key)
        try:
            kind = kind_of(feature)
            if kind is not dtype:
                mismatch = (
                    f"Data type: {kind.name} but expected type: {dtype.name}"
                    if dense
                    else f"Expected type: {dtype.name}, Actual type: {kind.name}"
                )
                raise ValueError(f"{place}Data types don't match. {mismatch}")
            return values_of(feature)
        except WireError:
            why = f": Parsing {LIST_NAMES[dtype]}_list failed." if self.single else "."
            raise ValueError(f"{place}Can't parse serialized Example{why}") from None


def shown(text: bytes) -> str:
    """The beginning of a text for one line of an error, other than printable characters as escapes."""
    start = text[:MOST_SHOWN].decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in start) + "..." * (len(text) > MOST_SHOWN)


def batch_of(serialized: Array, names: Sequence[bytes] = ()) -> Batch:
    """The records of a scalar (one record) or vector.

    Raises:
        ValueError: one is no Example, or the names are not as many as the records.
    """
    if names and len(names) != serialized.size:
        raise ValueError(
            f"Expected names have the same shape as serialized: name.shape=[{len(names)}], "
            f"serialized.shape={listed(serialized.shape)}"
        )
    records, emptied = [], []
    for record in serialized.reshape(-1).tolist():
        empty: set[bytes] = set()
        try:
            records.append(features_of(record, empty))
        except WireError:
            raise ValueError(f"Could not parse example input, value: '{shown(record)}'") from None
        emptied.append(frozenset(empty.intersection(records[-1])))
    single = serialized.ndim == 0
    return Batch(tuple(records), tuple(names), single, tuple(emptied) if any(emptied) and not single else ())


def listed(dims: Sequence[int | None]) -> str:
    """A shape as TensorFlow's messages write it."""
    return "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def texts(array: Array) -> list[bytes]:
    """The strings of a tensor, in row-major order."""
    return [bytes(item) for item in array.reshape(-1).tolist()] if array.size else []


class Wanted(NamedTuple):
    """The features that an op wants of records; of sequences, of the context or of the steps."""

    sparse: Sequence[bytes]
    sparse_types: Sequence[DType]
    dense: Sequence[bytes]
    dense_types: Sequence[DType]
    dense_shapes: Sequence[Shape]
    ragged: Sequence[bytes] = ()
    ragged_types: Sequence[DType] = ()
    split_types: Sequence[DType] = ()

    def check_types(self) -> None:
        """Raises ValueError: the lists do not fit each other, or a type is none of a record's."""
        pairs = (
            (self.sparse, self.sparse_types),
            (self.dense, self.dense_types),
            (self.dense, self.dense_shapes),
            (self.ragged, self.ragged_types),
            (self.ragged, self.split_types),
        )
        if any(len(keys) != len(others) for keys, others in pairs):
            raise ValueError("the keys, types and shapes are not equally many")
        for dtype in (*self.sparse_types, *self.dense_types, *self.ragged_types):
            if dtype not in LIST_NAMES:
                raise ValueError(f"a record holds no {dtype.name}; a feature is int64, float or string")

    def check(self, what: str) -> None:
        """As check_types, and raises ValueError: a key is wanted in two ways; ``what`` names the features."""
        self.check_types()
        for keys, others, ways in (
            (self.ragged, self.sparse, "ragged and sparse"),
            (self.dense, (*self.sparse, *self.ragged), "dense and sparse"),
        ):
            both = next((key for key in keys if key in others), None)
            if both is not None:
                raise ValueError(f"{what} feature {shown(both)} cannot be both {ways}")


def encoded(keys: Sequence[str | bytes]) -> list[bytes]:
    """Keys as attributes have them, as bytes."""
    return [key if isinstance(key, bytes) else key.encode() for key in keys]
