"""The features that an op wants of records, by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pocketgraph.graph import DType, Shape
from pocketgraph.kernels.parsing.example_records import LIST_NAMES
from pocketgraph.kernels.parsing.record_batches import shown


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
