"""A feature of a batch of Examples."""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.kernels.arrays import Array


class RecordColumn(NamedTuple):
    """A feature of all records.

    Attributes:
        values: one record's after the other's.
        counts: int64 (records,): how many values each record has; -1 where it has no such feature.
    """

    values: Array
    counts: Array
