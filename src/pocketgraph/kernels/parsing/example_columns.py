"""Examples of a batch read together: one step for a record or a key, in place of one for each key of each record.

Few records, and long ones, are read by a pattern that earlier ones taught. Else they lie one after the other in one
array of bytes, and are read along the layout of the first one, or where that is not everybody's by keys. What is not as
encoders write it (features given twice, numbers that are not packed, lengths that disagree) is left to the general way,
which knows the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.parsing.column_results import RecordColumn
from pocketgraph.kernels.parsing.example_keys import columns_by_keys
from pocketgraph.kernels.parsing.example_layout import columns_by_layout
from pocketgraph.kernels.parsing.example_pattern import Memory, columns_by_pattern
from pocketgraph.kernels.parsing.example_walk import columns_by_walk
from pocketgraph.kernels.parsing.record_bytes import PADDING, IrregularError
from pocketgraph.protobuf.wire import WireError, read_varint

LEAST_TOGETHER = 48  # records of a batch; below, one after the other is quicker
MOST_MATCHED = 144  # records of a batch; with more, a feature of all at a time is quicker than a record at a time
LONG = 1 << 10  # bytes of a record, in which a match for it alone does not count
LOOKED_AT = 4  # records, whose first keys tell whether looking for a layout is worth it
MOST_BYTES = 1 << 30  # of a batch


def new_array(_: bytes, records: int, each: int, dtype: Any) -> Array:
    """An array that was none before."""
    return np.empty(records * each, dtype)


def columns_of(
    records: Sequence[bytes], wanted: Mapping[bytes, DType], memory: Memory | None = new_array
) -> dict[bytes, RecordColumn] | None:
    """The wanted features of a batch; None where the general way is to read them.

    ``memory`` gives large arrays; None: no pattern is made of what batches hold.
    """
    total = sum(map(len, records))
    if total > MOST_BYTES or not records or not all(records):
        return None
    if memory is not None and (len(records) <= MOST_MATCHED or total > LONG * len(records)):
        found = columns_by_pattern(records, wanted, memory)
        if found is not None:
            return found
    if len(records) < LEAST_TOGETHER:
        return columns_by_walk(records, wanted)
    data = b"".join([*records, bytes(PADDING)])
    ends = np.cumsum(np.fromiter(map(len, records), np.int64, len(records)))
    content = np.frombuffer(data, np.uint8)
    try:
        if _begin_alike(records):
            return columns_by_layout(data, content, ends, wanted)
    except (IrregularError, WireError, IndexError):
        pass
    try:
        return columns_by_keys(data, content, ends, wanted)
    except (IrregularError, WireError, IndexError):
        return None


def _begin_alike(records: Sequence[bytes]) -> bool:
    """Whether some of the records begin with the key of the first one: else they have no layout in common."""
    keys = set()
    for record in records[:LOOKED_AT]:
        place = read_varint(record, 1, len(record))[1]
        inner = read_varint(record, place + 1, len(record))[1]
        keys.add(record[inner + 1 : inner + 2 + record[inner + 1]])
    return len(keys) == 1
