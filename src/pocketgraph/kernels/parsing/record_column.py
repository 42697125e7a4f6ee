"""A feature of a batch of Examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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

    def counts(self) -> Array:
        """int64 (records,): how many values each record has; -1 where it has no such feature."""
        return np.full(self.records, self.each) if isinstance(self.each, int) else self.each
