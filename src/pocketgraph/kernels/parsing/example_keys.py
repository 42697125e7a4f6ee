"""Examples of a batch whose keys come in any order, or are missing in some, read a key of all records at a time.

The entries of all records are found first, an entry of each in a step. A number that follows from its key, its mark,
says which feature an entry is: where all records have the same keys, sorting each one's marks brings those of a key
together. What stands before the values of a feature is then compared whole, as in records of one layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import STRING
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.kernels.parsing.column_results import RecordColumn
from pocketgraph.kernels.parsing.example_layout import column_at, expect_entries, first_entries
from pocketgraph.kernels.parsing.example_records import ENTRY, FEATURE
from pocketgraph.kernels.parsing.example_walk import MOST_KEY
from pocketgraph.kernels.parsing.record_bytes import IrregularError, all_true, expect, sizes_at

MOST_ENTRIES = 256  # of a record, which are found one after the other
MASKS = np.array([(1 << 8 * count + 8) - 1 for count in range(8)], np.uint64)
"""Of eight bytes as a number, a key's length and its first so many bytes."""
ODD = 0x9E3779B97F4A7C15  # what mixes a key's end into its mark; any odd number does


class Entries(NamedTuple):
    """Entries of records: (records, entries of each) where each has as many, else one dimension, by records.

    Attributes:
        place: where each begins.
        inner: where its content begins.
        mark: of its key.
    """

    place: Array
    inner: Array
    mark: Array


def columns_by_keys(
    data: bytes, content: Array, ends: Array, wanted: Mapping[bytes, DType]
) -> dict[bytes, RecordColumn]:
    """The wanted features of the records that end there.

    Raises:
        IrregularError, WireError, IndexError: the records are not as encoders write them.
    """
    record, place, inner = _entries(content, first_entries(content, ends), ends)
    mark = _marks(content, inner)
    if record is None:
        try:
            return _of_same_keys(data, content, Entries(place, inner, mark), wanted)
        except IrregularError:
            record = np.repeat(np.arange(len(ends)), place.shape[1])
            place, inner, mark = place.reshape(-1), inner.reshape(-1), mark.reshape(-1)
    return _of_any_keys(data, content, Entries(place, inner, mark), record, wanted, len(ends))


def _entries(content: Array, place: Array, ends: Array) -> tuple[Array | None, Array, Array]:
    """(the record of each entry, where it begins, where its content begins), by records; where each record has as many
    entries, None and (records, entries)."""
    steps: list[tuple[Array, Array]] = []
    records: list[Array] = []
    count = len(ends)
    left = np.arange(count)
    while True:
        going = place < ends
        if not all_true(going):
            expect(going | (place == ends))
            left, place, ends = left[going], place[going], ends[going]
            if not len(left):
                break
        if len(steps) == MOST_ENTRIES:
            raise IrregularError
        size, inner = sizes_at(content, place + 1)
        steps.append((place, inner))
        records.append(left)
        place = inner + size
    if not steps:
        raise IrregularError
    if len(records[-1]) == count:
        places, inners = (np.stack(part, axis=1) for part in zip(*steps, strict=True))
        return None, places, inners
    record = np.concatenate(records)
    order = np.argsort(record, kind="stable")
    places, inners = (np.concatenate(part)[order] for part in zip(*steps, strict=True))
    return record[order], places, inners


def _marks(content: Array, inner: Array) -> Array:
    """The mark of the key of each entry whose content begins there."""
    eight: Array = np.ndarray((len(content) - 7,), "<u8", content, 0, (1,))
    mark: Array = eight[inner + 1]
    length = (mark & np.uint64(0xFF)).astype(np.int64)
    longest = int(length.max())
    if longest > MOST_KEY:
        raise IrregularError
    mark &= MASKS[np.minimum(length, 7)]
    if longest > 7:
        mark ^= np.where(length > 7, eight[inner + (length - 6)] * np.uint64(ODD), np.uint64(0))
    return mark


@lru_cache(maxsize=256)
def _mark(key: bytes) -> int:
    """The mark of a key."""
    found = int.from_bytes(key[:7], "little") << 8 | len(key)
    return found ^ (int.from_bytes(key[-8:], "little") * ODD & (1 << 64) - 1) if len(key) > 7 else found


def _of_same_keys(
    data: bytes, content: Array, entries: Entries, wanted: Mapping[bytes, DType]
) -> dict[bytes, RecordColumn]:
    """The wanted features where each record has the same keys once; IrregularError where they do not."""
    order = entries.mark.argsort(axis=1)
    order += (np.arange(len(order)) * order.shape[1])[:, None]
    marks, place = entries.mark.reshape(-1)[order], entries.place.reshape(-1)[order]
    first = marks[0]
    expect(marks == first)
    expect(first[1:] != first[:-1])
    keys = {_mark(key): key for key in wanted}
    found: dict[bytes, RecordColumn] = {}
    for mark, places in zip(first.tolist(), np.ascontiguousarray(place.T), strict=True):
        if mark in keys:
            found[keys[mark]] = column_at(data, content, places, keys[mark], wanted[keys[mark]])
        else:
            expect_entries(data, content, places)
    return {key: found[key] if key in found else _nowhere(dtype, len(place)) for key, dtype in wanted.items()}


def _nowhere(dtype: DType, records: int) -> RecordColumn:
    return RecordColumn(strings([], (0,)) if dtype is STRING else np.empty(0, dtype.numpy), -1, records)


def _of_any_keys(
    data: bytes, content: Array, entries: Entries, record: Array, wanted: Mapping[bytes, DType], records: int
) -> dict[bytes, RecordColumn]:
    """The wanted features; a Feature that holds nothing is none."""
    place, inner, mark = entries
    size, _ = sizes_at(content, place + 1)
    behind = inner + 2 + content[inner + 1]
    held, feature = sizes_at(content, behind + 1)
    expect(
        (content[place] == ENTRY) & (content[inner] == ENTRY) & (content[behind] == FEATURE)
        & (feature + held == inner + size)
    )  # fmt: skip
    columns: dict[bytes, RecordColumn] = {}
    for key, dtype in wanted.items():
        found = np.flatnonzero((mark == np.uint64(_mark(key))) & (held > 0))
        rows = record[found]
        expect(rows[1:] > rows[:-1])
        columns[key] = _nowhere(dtype, records)
        if len(found):
            values, each, _ = column_at(data, content, place[found], key, dtype)
            counts = np.full(records, -1, np.int64)
            counts[rows] = each
            columns[key] = RecordColumn(values, counts, records)
    return columns
