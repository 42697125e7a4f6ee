"""Examples of a batch read together: one step for a key of all records, in place of one for each record and key.

The records lie one after the other in one array of bytes. All of them are walked at once, an entry of each in a step;
then the entries of each key are picked. What is not as encoders write it (features given twice, numbers that are not
packed, lengths that disagree) is left to the general way, which knows the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.kernels.parsing.example_layout import columns_by_layout
from pocketgraph.kernels.parsing.example_records import ENTRY, FEATURE
from pocketgraph.kernels.parsing.example_walk import TAGS, columns_by_walk
from pocketgraph.kernels.parsing.record_bytes import (
    PADDING,
    IrregularError,
    expect,
    joined,
    sizes_at,
    texts,
    varints,
    windows,
)
from pocketgraph.kernels.parsing.record_column import RecordColumn
from pocketgraph.protobuf.wire import WireError

LEAST_TOGETHER = 48  # records of a batch; below, one after the other is quicker
MOST_BYTES = 1 << 30  # of a batch
MOST_ENTRIES = 256  # of a record, which are found one after the other
MOST_KEY = 127  # bytes of a key
KEY_MASKS = np.array([(1 << 8 * count) - 1 for count in range(8)], np.uint64)
"""Of eight bytes as a number, those of a key of so many bytes."""


def columns_of(records: Sequence[bytes], wanted: Mapping[bytes, DType]) -> dict[bytes, RecordColumn] | None:
    """The wanted features of a batch; None where the general way is to read them."""
    total = sum(map(len, records))
    if total > MOST_BYTES or not records or not all(records):
        return None
    if len(records) < LEAST_TOGETHER:
        return columns_by_walk(records, wanted)
    data = b"".join([*records, bytes(PADDING)])
    ends = np.cumsum(np.fromiter(map(len, records), np.int64, len(records)))
    content = np.frombuffer(data, np.uint8)
    try:
        return columns_by_layout(data, content, ends, wanted)
    except (IrregularError, WireError, IndexError):
        pass
    try:
        entries = _entries(content, ends)
        return {key: _column(data, content, entries, key, len(ends), dtype) for key, dtype in wanted.items()}
    except IrregularError:
        return None


class _Entries(NamedTuple):
    """The entries of all records: of each its record, its key and the list that its Feature is.

    Attributes:
        record: its number.
        key: where the key begins.
        mark: the key's first bytes and its length, as one number.
        begin, size: the bytes of the list; 0 of a Feature that holds nothing.
        tag: of the list; 0 of a Feature that holds nothing.
        packed, length: the bytes of the numbers of a list that is packed.
        is_list, is_packed: whether everything is as it should be for a list, and for a packed one.
    """

    record: Array
    key: Array
    mark: Array
    begin: Array
    size: Array
    tag: Array
    packed: Array
    length: Array
    is_list: Array
    is_packed: Array


def _entries(content: Array, ends: Array) -> _Entries:
    """Finds the entries of the records that end there."""
    record, place, inner, stop = _spans(content, ends)
    length = content[inner + 1].astype(np.int64)
    key = inner + 2
    behind = key + length
    size, feature = sizes_at(content, behind + 1)
    expect(
        (content[place] == ENTRY) & (content[inner] == ENTRY) & (length <= MOST_KEY)
        & (content[behind] == FEATURE) & (feature + size == stop)
    )  # fmt: skip
    mark = windows(content, 8)[key].view("<u8")[:, 0] & KEY_MASKS[np.minimum(length, 7)]
    mark |= length.astype(np.uint64) << np.uint64(56)
    tag = content[feature]
    tag[size == 0] = 0
    size, begin = sizes_at(content, feature + 1)
    is_list = begin + size == stop
    length, packed = sizes_at(content, np.minimum(begin, stop) + 1)
    is_packed = is_list & (content[np.minimum(begin, stop)] == ENTRY) & (packed + length == stop)
    return _Entries(record, key, mark, begin, size, tag, packed, length, is_list, is_packed)


def _spans(content: Array, ends: Array) -> tuple[Array, Array, Array, Array]:
    """(its record, where it begins, where its content begins and ends) of each entry of the records that end there."""
    starts = np.concatenate([[0], ends[:-1]])
    size, place = sizes_at(content, starts + 1)
    expect((content[starts] == ENTRY) & (place + size == ends))
    record = np.arange(len(ends))
    steps: list[tuple[Array, ...]] = []
    while True:
        going = place < ends
        if not going.all():
            record, place, ends = record[going], place[going], ends[going]
            if not len(record):
                break
        if len(steps) == MOST_ENTRIES:
            raise IrregularError
        size, inner = sizes_at(content, place + 1)
        stop = inner + size
        if (stop > ends).any():
            raise IrregularError
        steps.append((record, place, inner, stop))
        place = stop
    if not steps:
        raise IrregularError
    return tuple(np.concatenate(parts) for parts in zip(*steps, strict=True))  # type: ignore[return-value]


def _found(content: Array, entries: _Entries, key: bytes) -> Array:
    """The entries of a key, in the records' order."""
    if len(key) > MOST_KEY:
        raise IrregularError
    found = np.flatnonzero(entries.mark == np.uint64(int.from_bytes(key[:7], "little") | len(key) << 56))
    if len(key) > 7 and len(found):
        spelled = windows(content, len(key))
        found = found[(spelled[entries.key[found]] == np.frombuffer(key, np.uint8)).all(axis=1)]
    record = entries.record[found]
    if len(record) > 1 and not (record[1:] > record[:-1]).all():
        places = np.full(int(record.max()) + 1, -1)
        places[record] = found
        count, found = len(found), places[places >= 0]
        if len(found) != count:  # given twice
            raise IrregularError
    return found


def _column(data: bytes, content: Array, entries: _Entries, key: bytes, records: int, dtype: DType) -> RecordColumn:
    """The values of a feature."""
    found = _found(content, entries, key)
    tag = entries.tag[found]
    right = tag == TAGS[dtype]
    if not right.all():
        expect(right | (tag == 0))
        found = found[right]  # a Feature that holds nothing is none
    counts = np.full(records, -1, np.int64)
    if not len(found):
        return RecordColumn(strings([], (0,)) if dtype is STRING else np.empty(0, dtype.numpy), -1, records)
    values: Array
    each: Array | int
    if dtype is STRING:
        expect(entries.is_list[found])
        begin = entries.begin[found]
        values, each = texts(data, content, begin, begin + entries.size[found])
    else:
        values, each = _numbers(data, content, entries, found, dtype)
    if len(found) == records:
        counts[...] = each
    else:
        counts[entries.record[found]] = each
    return RecordColumn(values, counts, records)


def _numbers(data: bytes, content: Array, entries: _Entries, found: Array, dtype: DType) -> tuple[Array, Array]:
    """The values of packed lists of numbers, and how many each has."""
    is_packed = entries.is_packed[found]
    if not is_packed.all():
        expect(is_packed | ((entries.size[found] == 0) & entries.is_list[found]))
        each = np.zeros(len(found), np.int64)
        if not is_packed.any():
            return np.empty(0, dtype.numpy), each
        values, each[is_packed] = _numbers(data, content, entries, found[is_packed], dtype)
        return values, each
    begin, size = entries.packed[found], entries.length[found]
    packed = joined(data, content, begin, size)
    if dtype is FLOAT:
        if (size & 3).any():
            raise IrregularError
        return packed.view("<f4").astype(np.float32, copy=False), size >> 2
    return varints(packed, size)
