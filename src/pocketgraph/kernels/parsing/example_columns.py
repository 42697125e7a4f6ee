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
from pocketgraph.graph.dtype import FLOAT, INT64, STRING
from pocketgraph.kernels.arrays import Array, reserve, strings
from pocketgraph.kernels.parsing.example_messages import columns_by_messages
from pocketgraph.kernels.parsing.example_records import ENTRY, FEATURE, FLOATS, INTEGERS, TEXTS
from pocketgraph.kernels.parsing.record_column import RecordColumn

LEAST_RECORDS, LEAST_BYTES = 40, 24_000  # of a batch; below both record by record is quicker
LEAST_BY_MESSAGES = 4  # small records, from which protobuf's parser is quicker than walking them one by one
MOST_BYTES = 1 << 30  # of a batch
MOST_ENTRIES = 256  # of a record, which are found one after the other
MOST_TEXTS = 64  # in a feature, which are found one after the other
MOST_KEY = 127  # bytes of a key
PADDING = 512  # zeros behind the last record, so that reading ahead stays inside
KEY_MASKS = np.array([(1 << 8 * count) - 1 for count in range(8)], np.uint64)
"""Of eight bytes as a number, those of a key of so many bytes."""
TAGS = {STRING: TEXTS, FLOAT: FLOATS, INT64: INTEGERS}


class _IrregularError(Exception):
    """The records are not as encoders write them."""


def columns_of(records: Sequence[bytes], wanted: Mapping[bytes, DType]) -> dict[bytes, RecordColumn] | None:
    """The wanted features of a batch; None where the general way is to read them."""
    total = sum(map(len, records))
    if total > MOST_BYTES or not all(records):
        return None
    if len(records) < LEAST_RECORDS and total < LEAST_BYTES:
        return columns_by_messages(records, wanted) if len(records) >= LEAST_BY_MESSAGES else None
    data = b"".join([*records, bytes(PADDING)])
    ends = np.cumsum(np.fromiter(map(len, records), np.int64, len(records)))
    content = np.frombuffer(data, np.uint8)
    try:
        entries = _entries(content, ends)
        return {key: _column(data, content, entries, key, len(ends), dtype) for key, dtype in wanted.items()}
    except _IrregularError:
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
    size, feature = _sizes(content, behind + 1)
    _expect(
        (content[place] == ENTRY) & (content[inner] == ENTRY) & (length <= MOST_KEY)
        & (content[behind] == FEATURE) & (feature + size == stop)
    )  # fmt: skip
    mark = _windows(content, 8)[key].view("<u8")[:, 0] & KEY_MASKS[np.minimum(length, 7)]
    mark |= length.astype(np.uint64) << np.uint64(56)
    tag = content[feature]
    tag[size == 0] = 0
    size, begin = _sizes(content, feature + 1)
    is_list = begin + size == stop
    length, packed = _sizes(content, np.minimum(begin, stop) + 1)
    is_packed = is_list & (content[np.minimum(begin, stop)] == ENTRY) & (packed + length == stop)
    return _Entries(record, key, mark, begin, size, tag, packed, length, is_list, is_packed)


def _spans(content: Array, ends: Array) -> tuple[Array, Array, Array, Array]:
    """(its record, where it begins, where its content begins and ends) of each entry of the records that end there."""
    starts = np.concatenate([[0], ends[:-1]])
    size, place = _sizes(content, starts + 1)
    _expect((content[starts] == ENTRY) & (place + size == ends))
    record = np.arange(len(ends))
    steps: list[tuple[Array, ...]] = []
    while True:
        going = place < ends
        if not going.all():
            record, place, ends = record[going], place[going], ends[going]
            if not len(record):
                break
        if len(steps) == MOST_ENTRIES:
            raise _IrregularError
        size, inner = _sizes(content, place + 1)
        stop = inner + size
        if (stop > ends).any():
            raise _IrregularError
        steps.append((record, place, inner, stop))
        place = stop
    if not steps:
        raise _IrregularError
    return tuple(np.concatenate(parts) for parts in zip(*steps, strict=True))  # type: ignore[return-value]


def _found(content: Array, entries: _Entries, key: bytes) -> Array:
    """The entries of a key, in the records' order."""
    if len(key) > MOST_KEY:
        raise _IrregularError
    found = np.flatnonzero(entries.mark == np.uint64(int.from_bytes(key[:7], "little") | len(key) << 56))
    if len(key) > 7 and len(found):
        windows = _windows(content, len(key))
        found = found[(windows[entries.key[found]] == np.frombuffer(key, np.uint8)).all(axis=1)]
    record = entries.record[found]
    if len(record) > 1 and not (record[1:] > record[:-1]).all():
        places = np.full(int(record.max()) + 1, -1)
        places[record] = found
        count, found = len(found), places[places >= 0]
        if len(found) != count:  # given twice
            raise _IrregularError
    return found


def _column(data: bytes, content: Array, entries: _Entries, key: bytes, records: int, dtype: DType) -> RecordColumn:
    """The values of a feature."""
    found = _found(content, entries, key)
    tag = entries.tag[found]
    right = tag == TAGS[dtype]
    if not right.all():
        _expect(right | (tag == 0))
        found = found[right]  # a Feature that holds nothing is none
    counts = np.full(records, -1, np.int64)
    if not len(found):
        return RecordColumn(strings([], (0,)) if dtype is STRING else np.empty(0, dtype.numpy), counts)
    values: Array
    each: Array | int
    if dtype is STRING:
        _expect(entries.is_list[found])
        begin = entries.begin[found]
        values, each = _texts(data, content, begin, begin + entries.size[found])
    else:
        values, each = _numbers(data, content, entries, found, dtype)
    if len(found) == records:
        counts[...] = each
    else:
        counts[entries.record[found]] = each
    return RecordColumn(values, counts)


def _numbers(data: bytes, content: Array, entries: _Entries, found: Array, dtype: DType) -> tuple[Array, Array]:
    """The values of packed lists of numbers, and how many each has."""
    is_packed = entries.is_packed[found]
    if not is_packed.all():
        _expect(is_packed | ((entries.size[found] == 0) & entries.is_list[found]))
        each = np.zeros(len(found), np.int64)
        if not is_packed.any():
            return np.empty(0, dtype.numpy), each
        values, each[is_packed] = _numbers(data, content, entries, found[is_packed], dtype)
        return values, each
    begin, size = entries.packed[found], entries.length[found]
    packed = _joined(data, content, begin, size)
    if dtype is FLOAT:
        if (size & 3).any():
            raise _IrregularError
        return packed.view("<f4").astype(np.float32, copy=False), size >> 2
    return _varints(packed, size)


def _joined(data: bytes, content: Array, begin: Array, size: Array) -> Array:
    """The bytes of these ranges, one after the other."""
    if not len(size) or not size.any():
        return np.empty(0, np.uint8)
    reserve((int(size.sum()),), np.uint8)
    length = int(size[0])
    if length and bool((size == length).all()):
        return np.asarray(_windows(content, length)[begin].reshape(-1))
    ranges = zip(begin.tolist(), (begin + size).tolist(), strict=True)
    return np.frombuffer(bytearray().join([data[a:b] for a, b in ranges]), np.uint8)


def _varints(packed: Array, sizes: Array) -> tuple[Array, Array]:
    """The int64 numbers of varints, and how many are in each of the ranges of so many bytes."""
    if not len(packed):
        return np.empty(0, np.int64), np.zeros(len(sizes), np.int64)
    is_last = packed < 0x80
    borders = np.cumsum(sizes)
    _expect(is_last[borders[sizes > 0] - 1])
    numbers = packed & 0x7F
    if is_last.all():
        return numbers.astype(np.int64), sizes
    last = np.flatnonzero(is_last)
    first = np.empty_like(last)
    first[0], first[1:] = 0, last[:-1] + 1
    length = last - first + 1
    longest = int(length.max())
    if longest > 10:
        raise _IrregularError
    values = numbers[first].astype(np.uint64)
    reserve(values.shape, np.uint64)
    for place in range(1, longest):
        some = np.flatnonzero(length > place)
        values[some] |= numbers[first[some] + place].astype(np.uint64) << np.uint64(7 * place)
    counts = np.searchsorted(last, borders)  # a border is behind the last byte of its last number
    counts[1:] -= counts[:-1].copy()
    return values.view(np.int64), counts


def _texts(data: bytes, content: Array, begin: Array, end: Array) -> tuple[Array, Array]:
    """The texts of lists, and how many each has."""
    counts = np.zeros(len(begin), np.int64)
    places = begin.copy()
    rows = np.flatnonzero(places < end)
    found: list[tuple[Array, Array, Array]] = []
    while len(rows):
        if len(found) == MOST_TEXTS:
            raise _IrregularError
        size, start = _sizes(content, places[rows] + 1)
        stop = start + size
        _expect((content[places[rows]] == ENTRY) & (stop <= end[rows]))
        found.append((rows, start, stop))
        counts[rows] += 1
        places[rows] = stop
        rows = rows[stop < end[rows]]
    if not found:
        return strings([], (0,)), counts
    owners, starts, stops = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if len(found) > 1:
        order = np.argsort(owners, kind="stable")
        starts, stops = starts[order], stops[order]
    reserve((len(starts),), object)
    pairs = zip(starts.tolist(), stops.tolist(), strict=True)
    return strings([data[a:b] for a, b in pairs], (len(starts),)), counts


def _sizes(content: Array, places: Array) -> tuple[Array, Array]:
    """The lengths (varints of up to four bytes) at these places, and the places behind them."""
    size = content[places].astype(np.int64)
    behind = places + 1
    if not len(size) or size.max() < 0x80:
        return size, behind
    more = size >= 0x80
    size &= 0x7F
    for place in range(1, 4):
        rows = np.flatnonzero(more)
        byte = content[behind[rows]].astype(np.int64)
        size[rows] |= (byte & 0x7F) << (7 * place)
        behind[rows] += 1
        more[rows] = byte >= 0x80
        if not more.any():
            return size, behind
    raise _IrregularError


def _windows(content: Array, length: int) -> Array:
    """(places, length): what lies at each place, without copying."""
    windows: Array = np.ndarray((len(content) - length + 1, length), np.uint8, content, 0, (1, 1))
    return windows


def _expect(holds: Array) -> None:
    if not holds.all():
        raise _IrregularError
