"""A feature of a batch of Examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array


class RecordColumn(NamedTuple):
    """A feature of all records.

    Attributes:
        values: one record's after the other's; what has as many in each may be of any shape.
        each: how many values each record has, -1 where it has no such feature: int64 (records,), or one number for all.
        records: how many there are.
    """

    values: Array
    each: Array | int
    records: int

    @classmethod
    def of(cls, found: Sequence[Array | None], dtype: DType) -> RecordColumn:
        """Of the values of each record, None where it has no such feature."""
        each = np.array([-1 if values is None else values.size for values in found], np.int64)
        parts = [values for values in found if values is not None]
        return cls(np.concatenate(parts) if parts else np.empty(0, dtype.numpy), each, len(found))

    def counts(self) -> Array:
        """int64 (records,): how many values each record has; -1 where it has no such feature."""
        return np.full(self.records, self.each) if isinstance(self.each, int) else self.each
