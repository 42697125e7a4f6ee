"""Examples of a batch whose records have the same keys in the same order, read a key of all records at a time.

The first record tells the order. What stands before the values of a feature follows from its key, its type and their
length; it is compared for all records at once. Entries of one length in a row, as floats are, are compared together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.kernels.arrays import Array, reserve, strings
from pocketgraph.kernels.parsing.column_results import RecordColumn
from pocketgraph.kernels.parsing.example_records import ENTRY, FEATURE, FLOATS, TEXTS
from pocketgraph.kernels.parsing.example_walk import SHORT, SKIPPED, TAGS, FeatureKeys, Headers, field, headers_of
from pocketgraph.kernels.parsing.record_bytes import all_true, expect, joined, sizes_at, texts, varints, windows
from pocketgraph.protobuf.wire import read_varint

MOST_COMPARED = 400  # bytes of entries that are compared together
WILD = 255  # in what is compared: any byte


class _ExampleEntry(NamedTuple):
    """An entry of the first record.

    Attributes:
        key, tag: of the feature; SKIPPED of one that is not wanted.
        dtype: of the feature; None of one that is not wanted.
        head: the bytes before the values, where they are as an encoder writes them; else empty.
        size: of the values, in bytes.
        headers: of other lengths.
    """

    key: bytes
    tag: int
    dtype: DType | None
    head: bytes
    size: int
    headers: Headers


def columns_by_layout(
    data: bytes, content: Array, ends: Array, wanted: Mapping[bytes, DType]
) -> dict[bytes, RecordColumn]:
    """The wanted features of the records that end there.

    Raises:
        IrregularError, WireError: the records are not alike, or not as encoders write them.
    """
    place = first_entries(content, ends)
    columns: dict[bytes, RecordColumn] = {}
    run: list[_ExampleEntry] = []
    for entry in [*_layout(data[: int(ends[0])], wanted), None]:
        if entry is not None and entry.tag == FLOATS and entry.head:
            run.append(entry)
            continue
        if run:
            behind = _fixed(content, place, run, columns)
            place = _one_by_one(data, content, place, run, columns) if behind is None else behind
            run = []
        if entry is not None:
            place = _one_by_one(data, content, place, (entry,), columns)
    expect(place == ends)
    for key, dtype in wanted.items():
        if key not in columns:
            columns[key] = RecordColumn(np.empty(0, dtype.numpy), -1, len(ends))
    return columns


def _layout(record: bytes, wanted: Mapping[bytes, DType]) -> list[_ExampleEntry]:
    """The entries of a record."""
    place = read_varint(record, 1, len(record))[1]
    found: list[_ExampleEntry] = []
    for headers, _, _ in FeatureKeys(wanted).of(record):
        entry, place = _entry_at(record, place, headers, wanted.get(headers.key))
        found.append(entry)
    return found


def _entry_at(data: bytes, place: int, headers: Headers, dtype: DType | None) -> tuple[_ExampleEntry, int]:
    """The entry that begins there, and the place behind it."""
    size, inner = read_varint(data, place + 1, len(data))
    head, start, length = headers[size]
    is_plain = data.startswith(head, place)
    entry = _ExampleEntry(headers.key, headers.tag, dtype, head if is_plain else b"", length - start, headers)
    return entry, inner + size


def column_at(data: bytes, content: Array, place: Array, key: bytes, dtype: DType) -> RecordColumn:
    """A feature whose entries begin there, one of each record.

    Raises:
        IrregularError, WireError: they are of another key or type, or not as encoders write them.
    """
    entry, _ = _entry_at(data, int(place[0]), headers_of(key, TAGS[dtype]), dtype)
    columns: dict[bytes, RecordColumn] = {}
    if dtype is not FLOAT or not entry.head or _fixed(content, place, (entry,), columns) is None:
        _one_by_one(data, content, place, (entry,), columns)
    return columns[key]


def first_entries(content: Array, ends: Array) -> Array:
    """The place of the first entry of each record, which is one map of entries.

    Raises:
        IrregularError: one is not.
    """
    starts = np.concatenate(([0], ends[:-1]))
    size, place = sizes_at(content, starts + 1)
    expect((content[starts] == ENTRY) & (place + size == ends))
    return place


def expect_entries(data: bytes, content: Array, place: Array) -> None:
    """Raises IrregularError where the entries that begin there are not of the first one's key, and well-formed."""
    inner = read_varint(data, int(place[0]) + 1, len(data))[1]
    key = data[inner + 2 : inner + 2 + data[inner + 1]]
    _any_range(content, place, _entry_at(data, int(place[0]), headers_of(key, SKIPPED), None)[0])


def _fixed(
    content: Array, place: Array, run: Sequence[_ExampleEntry], columns: dict[bytes, RecordColumn]
) -> Array | None:
    """Adds the columns of entries whose values take as many bytes in each record, and gives the places behind them.

    None where they do not.
    """
    records = len(place)
    first = 0
    while first < len(run):
        some: list[_ExampleEntry] = []
        length = 0
        while first < len(run) and (not some or length + len(run[first].head) + run[first].size <= MOST_COMPARED):
            some.append(run[first])
            length += len(run[first].head) + run[first].size
            first += 1
        whole = length <= MOST_COMPARED
        length = length if whole else len(some[0].head)
        block = windows(content, length)[place]
        offset = 0
        expected = bytearray()
        for entry in some:
            offset += len(entry.head)
            count = entry.size // 4
            reserve((records, entry.size), np.uint8)
            if whole:
                values = block[:, offset : offset + entry.size].copy()
                block[:, offset : offset + entry.size] = WILD
                expected += entry.head + bytes((WILD,)) * entry.size
            else:
                values = windows(content, entry.size)[place + offset]
                expected += entry.head
            offset += entry.size
            numbers = values.view("<f4").reshape(-1).astype(np.float32, copy=False)
            columns[entry.key] = RecordColumn(numbers, count, records)
        if not all_true(block == np.frombuffer(expected, np.uint8)):
            return None
        place = place + offset
    return place


def _one_by_one(
    data: bytes, content: Array, place: Array, entries: Sequence[_ExampleEntry], columns: dict[bytes, RecordColumn]
) -> Array:
    """Adds the columns of entries, and gives the places behind them."""
    for entry in entries:
        begin, behind, is_list = _range(content, place, entry)
        place = behind
        if entry.dtype is not None:
            columns[entry.key] = _column(data, content, begin, behind, entry.dtype, is_list)
    return place


def _range(content: Array, place: Array, entry: _ExampleEntry) -> tuple[Array, Array, bool]:
    """Where the values begin, where they and the entry end, and whether they are a list of texts."""
    width = len(entry.head)
    if entry.head and entry.size < SHORT and entry.size + width <= SHORT:
        block = windows(content, width)[place]
        size = block[:, -1]
        known = _short_heads(entry.headers, width)
        if size.tobytes().isascii() and all_true(block == known[size]):
            begin = place + width
            return begin, begin + size, False
    return _any_range(content, place, entry)


@lru_cache(maxsize=256)
def _short_heads(headers: Headers, width: int) -> Array:
    """(SHORT, width): what stands before values of so many bytes; rows of nothing where it takes more bytes."""
    found = np.zeros((SHORT, width), np.uint8)
    for size in range(SHORT):
        head, start, length = headers.made(size)
        if start == width and length - start < SHORT:
            found[length - start] = np.frombuffer(head, np.uint8)
    return found


def _any_range(content: Array, place: Array, entry: _ExampleEntry) -> tuple[Array, Array, bool]:
    """The same for lengths of any number of bytes, and for lists of texts."""
    size, inner = sizes_at(content, place + 1)
    stop = inner + size
    key = field(ENTRY, entry.key)
    expect(content[place] == ENTRY)
    expect(windows(content, len(key))[inner] == np.frombuffer(key, np.uint8))
    place = inner + len(key)
    tags = (FEATURE,) if entry.tag == SKIPPED else (FEATURE, entry.tag)
    for tag in tags:
        size, behind = sizes_at(content, place + 1)
        expect((content[place] == tag) & (behind + size == stop))
        place = behind
    if entry.tag in (SKIPPED, TEXTS):
        return place, stop, True
    empty = place == stop
    if not np.count_nonzero(empty):
        size, behind = sizes_at(content, place + 1)
        expect((content[place] == ENTRY) & (behind + size == stop))
        return behind, stop, False
    begin = stop.copy()
    full = np.flatnonzero(~empty)
    size, begin[full] = sizes_at(content, place[full] + 1)
    expect((content[place[full]] == ENTRY) & (begin[full] + size == stop[full]))
    return begin, stop, False


def _column(data: bytes, content: Array, begin: Array, end: Array, dtype: DType, is_list: bool) -> RecordColumn:
    """The values that lie there."""
    records = len(begin)
    values: Array
    if dtype is STRING:
        if is_list:
            return RecordColumn(*texts(data, content, begin, end), records)
        pairs = zip(begin.tolist(), end.tolist(), strict=True)
        values = strings([data[a:b] for a, b in pairs], (records,))
        return RecordColumn(values, 1, records)
    size = end - begin
    if dtype is FLOAT:
        expect((size & 3) == 0)
        packed = joined(data, content, begin, size)
        return RecordColumn(packed.view("<f4").astype(np.float32, copy=False), size >> 2, records)
    single = _single_integers(content, begin, size)
    if single is not None:
        return RecordColumn(single, 1, records)
    return RecordColumn(*varints(joined(data, content, begin, size), size), records)


CONTINUED = 0x8080808080808080
OF_LENGTH = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Of eight bytes as a number, the first so many."""
MARKS = np.array([0, *(CONTINUED & (1 << 8 * count - 8) - 1 for count in range(1, 9))], np.uint64)
"""Which bytes of a number say that another one follows, where it takes so many."""


def _single_integers(content: Array, begin: Array, size: Array) -> Array | None:
    """The int64 numbers, where each record has one of up to eight bytes."""
    longest = int(size.max())
    if longest > 8 or not all_true(size):
        return None
    if longest == 1:
        found = content[begin]
        return found.astype(np.int64) if found.tobytes().isascii() else None
    number = windows(content, 8)[begin].view("<u8")[:, 0] & OF_LENGTH[size]
    if not all_true(number & np.uint64(CONTINUED) == MARKS[size]):
        return None
    number &= np.uint64(0x7F7F7F7F7F7F7F7F)
    for width, low in ((7, 0x007F007F007F007F), (14, 0x00003FFF00003FFF), (28, 0x000000000FFFFFFF)):
        if longest * 7 > width:  # pairs of so many bits are put together
            number = (number & np.uint64(low)) | (number & np.uint64(low << width + width // 7)) >> np.uint64(
                width // 7
            )
    return number.view(np.int64)
