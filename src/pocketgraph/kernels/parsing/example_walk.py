"""Examples of a batch read one after the other, entry by entry.

Records of one writer have the same keys. What stands before the values of a feature is known from its key, its type
and the length of its entry, so it is compared whole. What is not as encoders write it (unknown fields, features given
twice, numbers that are not packed) is left to the general way, which knows the errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT, INT64, STRING
from pocketgraph.kernels.arrays import Array, strings
from pocketgraph.kernels.parsing.column_results import RecordColumn
from pocketgraph.kernels.parsing.example_records import ENTRY, FEATURE, FLOATS, INTEGERS, TEXTS
from pocketgraph.kernels.parsing.record_bytes import IrregularError, all_true, list_of_texts, varints
from pocketgraph.protobuf.wire import WireError, read_varint

TAGS = {STRING: TEXTS, FLOAT: FLOATS, INT64: INTEGERS}
SKIPPED, LISTED = 0, -1  # in place of a tag: a feature that is not wanted, and texts other than a single one
MOST_KEPT = 256  # lengths of an entry whose headers are kept
NO_HEADER = (b"\xff", 0, 0)  # of an entry that cannot be so long: no entry begins like this
MOST_KEY = 127  # bytes of a key
SHORT = 128  # a length below this takes one byte
MOST_SPELLED = 100  # bytes of integers, up to which reading each of them is quicker than NumPy's calls


class Headers(dict[int, tuple[bytes, int, int]]):
    """What entries of one key and type begin with, by what their length says; made when it is first asked for.

    Each is (the bytes before the values, how many these are, the bytes of the whole entry).

    Attributes:
        key: the feature's.
        tag: of the list that the feature holds, SKIPPED or LISTED.
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)  # for caches of what follows from a key and type

    def __init__(self, key: bytes, tag: int) -> None:
        super().__init__()
        self.key, self.tag = key, tag
        self._spelled = field(ENTRY, key)

    def __missing__(self, size: int) -> tuple[bytes, int, int]:
        found = self.made(size)
        if len(self) < MOST_KEPT:
            self[size] = found
        return found

    def made(self, size: int) -> tuple[bytes, int, int]:
        """What an entry of this length begins with; it is not kept."""
        left = size - len(self._spelled)
        tags = {SKIPPED: (FEATURE,), LISTED: (FEATURE, TEXTS)}.get(self.tag, (FEATURE, self.tag, ENTRY))
        header = head(ENTRY, size) + self._spelled
        if self.tag in (FLOATS, INTEGERS) and left == 4:  # a list without values
            tags = tags[:2]
        for tag in tags:
            left = inside(left)
            if left < 0:
                return NO_HEADER
            header += head(tag, left)
        if self.tag == FLOATS and left % 4:
            return NO_HEADER
        return header, len(header), len(header) + left


def head(tag: int, size: int) -> bytes:
    """The tag and the length of a field of so many bytes."""
    made = bytearray((tag,))
    while size > 127:
        made.append(size & 127 | 128)
        size >>= 7
    made.append(size)
    return bytes(made)


def field(tag: int, content: bytes) -> bytes:
    """A field that holds this."""
    return head(tag, len(content)) + content


def inside(size: int) -> int:
    """How many bytes a field holds that takes so many with its tag and its length; -1 where none takes so many."""
    for width in range(1, 6):
        left = size - 1 - width
        if left >= 0 and len(head(0, left)) == 1 + width:
            return left
    return -1


headers_of = lru_cache(maxsize=256)(Headers)
Value: TypeAlias = "bytes | list[bytes] | None"
"""A feature of a record: its packed numbers or its one text, its texts, or nothing where it has none."""
FeatureKey: TypeAlias = "tuple[Headers, int, Headers | None]"
"""Of a key: its headers, its place in a row (-1: not wanted), the headers of more texts than one."""


def columns_by_walk(records: Sequence[bytes], wanted: Mapping[bytes, DType]) -> dict[bytes, RecordColumn] | None:
    """The wanted features of a batch; None where the general way is to read them."""
    keys = FeatureKeys(wanted)
    blank: list[Value] = [None] * len(wanted)
    rows: list[list[Value]] = []
    try:
        for record in records:
            row = row_of(record, keys, blank)
            if row is None:
                return None
            rows.append(row)
        columns = zip(*rows, strict=True)
        return {key: column_of(values, dtype) for (key, dtype), values in zip(wanted.items(), columns, strict=True)}
    except (WireError, IndexError, IrregularError):
        return None


def row_of(record: bytes, keys: FeatureKeys, blank: Sequence[Value]) -> list[Value] | None:
    """The wanted features of a record; None where it is not as encoders write it."""
    row = list(blank)
    end = len(record)
    size, place = read_varint(record, 1, end)
    if record[0] != ENTRY or place + size != end:
        return None
    while place < end:
        size, inner = record[place + 1], place + 4
        if size > 127:
            size, inner = read_varint(record, place + 1, end)
            inner += 2
        headers, number, more = keys[record[inner : inner + record[inner - 1]]]
        header, start, length = headers[size]
        if record.startswith(header, place):
            if number >= 0:
                if row[number] is not None:
                    return None
                row[number] = record[place + start : place + length]
        elif more is not None and row[number] is None:
            header, start, length = more[size]
            if not record.startswith(header, place):
                return None
            row[number] = list_of_texts(record, place + start, place + length)
        else:
            return None
        place += length
    return row if place == end else None


class FeatureKeys(dict[bytes, "FeatureKey"]):
    """What is known of each key of records with the same wanted features; made when it is first asked for."""

    def __init__(self, wanted: Mapping[bytes, DType]) -> None:
        super().__init__()
        self._wanted = wanted
        self._numbers = {key: number for number, key in enumerate(wanted)}

    def __missing__(self, key: bytes) -> FeatureKey:
        if len(key) > MOST_KEY:
            raise WireError(0, "a key too long to keep")
        dtype = self._wanted.get(key)
        if dtype is None:
            found: FeatureKey = headers_of(key, SKIPPED), -1, None
        else:
            more = headers_of(key, LISTED) if dtype is STRING else None
            found = headers_of(key, TAGS[dtype]), self._numbers[key], more
        self[key] = found
        return found

    def of(self, record: bytes) -> list[FeatureKey]:
        """The keys of a record, in its order.

        Raises:
            WireError, IndexError: it is not as encoders write it, as far as that is looked at.
        """
        place, end = read_varint(record, 1, len(record))[1], len(record)
        names: list[bytes] = []
        while place < end:
            size, inner = record[place + 1], place + 2
            if size > 127:
                size, inner = read_varint(record, place + 1, end)
            length = record[inner + 1]
            if length > MOST_KEY:
                raise WireError(place, "a key too long to keep")
            names.append(record[inner + 2 : inner + 2 + length])
            place = inner + size
        if len(set(names)) < len(names):
            raise WireError(place, "a key twice")
        return [self[name] for name in names]


def column_of(values: Sequence[Value], dtype: DType, *, alike: bool = False) -> RecordColumn:
    """A feature of all records; ``alike``: it takes as many bytes in all that have it.

    Raises:
        WireError, IrregularError: integers are cut off.
    """
    records = len(values)
    if dtype is STRING:
        kinds = set(map(type, values))
        if kinds == {bytes}:
            return RecordColumn(strings(values, (records,)), 1, records)  # type: ignore[arg-type]
        if kinds == {list}:
            flat = list(chain.from_iterable(values))  # type: ignore[arg-type]
            return RecordColumn(strings(flat, (len(flat),)), np.array(list(map(len, values)), np.int64), records)  # type: ignore[arg-type]
        flat = [text for value in values if value is not None for text in ((value,) if type(value) is bytes else value)]
        counts = [-1 if value is None else 1 if type(value) is bytes else len(value) for value in values]
        return RecordColumn(strings(flat, (len(flat),)), np.array(counts, np.int64), records)  # type: ignore[arg-type]
    if alike and dtype is FLOAT:
        try:
            numbers: Array = np.frombuffer(bytearray().join(values), "<f4").astype(np.float32, copy=False)  # type: ignore[arg-type]
            return RecordColumn(numbers, len(numbers) // records, records)
        except TypeError:  # one has none
            pass
    if dtype is INT64:
        try:
            single = list(map(NUMBERS.__getitem__, values))  # type: ignore[arg-type]
            return RecordColumn(np.array(single, np.int64), 1, records)
        except KeyError:
            pass
    held: list[bytes] = [value for value in values if value is not None]  # type: ignore[misc]
    each: Array
    if dtype is FLOAT:
        numbers = np.frombuffer(b"".join(held), "<f4").astype(np.float32)
        each = np.array(list(map(len, held)), np.int64) >> 2
    else:
        numbers, each = _integers(held)
    if len(held) == records:
        same = int(each[0])
        return RecordColumn(numbers, same if all_true(each == same) else each, records)
    found = np.full(records, -1, np.int64)
    found[[value is not None for value in values]] = each
    return RecordColumn(numbers, found, records)


VARINT = re.compile(b"[\x80-\xff]{0,9}[^\x80-\xff]")
CONTINUED = bytes(range(128, 256))


class _Numbers(dict[bytes, int]):
    """int64 numbers by their varints; made when first asked for. KeyError of what is not one varint."""

    def __missing__(self, spelled: bytes) -> int:
        if not spelled or not VARINT.fullmatch(spelled):
            raise KeyError(spelled)
        found = read_varint(spelled, 0, len(spelled))[0] & (1 << 64) - 1
        found -= found >> 63 << 64
        if len(spelled) <= 2:
            self[spelled] = found
        return found


NUMBERS = _Numbers()


def _integers(held: list[bytes]) -> tuple[Array, Array]:
    """The int64 numbers of packed lists, and how many each has.

    Raises:
        WireError, IrregularError: one is cut off.
    """
    packed = b"".join(held)
    if packed.isascii() or len(packed) > MOST_SPELLED:
        return varints(np.frombuffer(packed, np.uint8), np.array(list(map(len, held)), np.int64))
    spelled = VARINT.findall(packed)
    if not b"".join([each[-1:] for each in held]).isascii():
        raise WireError(0, "a list of another kind of element")
    if len(b"".join(spelled)) < len(packed):
        raise WireError(0, "a number takes more than ten bytes")
    numbers = np.array(list(map(NUMBERS.__getitem__, spelled)), np.int64)
    return numbers, np.array([len(each.translate(None, CONTINUED)) for each in held], np.int64)
