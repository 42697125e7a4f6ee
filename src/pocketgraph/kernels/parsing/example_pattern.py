"""Examples of a batch read by one regular expression, which is made of what earlier batches of theirs held.

Records of one writer have the same keys, and entries of some lengths. What stands before the values of a feature
follows from its key, its type and its length, so that all that entries begin with can be written out, and one match
finds the values of a record. Records that do not match are read by their keys; what many of them held is learned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.parsing.column_results import RecordColumn
from pocketgraph.kernels.parsing.example_records import ENTRY, FEATURE, FLOATS, INTEGERS, TEXTS
from pocketgraph.kernels.parsing.example_walk import (
    LISTED,
    MOST_KEPT,
    SHORT,
    SKIPPED,
    FeatureKeys,
    Value,
    column_of,
    field,
    head,
    headers_of,
    inside,
    row_of,
)
from pocketgraph.kernels.parsing.record_bytes import IrregularError, list_of_texts
from pocketgraph.protobuf.wire import WireError, read_varint, varint

FIRST_LEARNED = 1024  # records that are read in other ways before a pattern is made: as long as making it takes
MOST_SURVEYED = 256  # records of a batch whose entries are looked at
MOST_FORMS = 600  # entries of other lengths that a pattern tells apart
SPREAD = 4  # what part of the bytes between the shortest and the longest that were seen others may be beyond them
MOST_LONG = 64  # longer lengths of a feature
FEW_SIZES = 4  # which are compared one after the other
LEAST_COPIED = 512  # bytes of numbers that each record has
LENGTH = b"([^\x80-\xff]|[\x80-\xff]{1,3}[^\x80-\xff])"  # a varint


class _Feature:
    """What a pattern knows of a key.

    Attributes:
        key, tag: as of ``Headers``.
        number: its place among the wanted features; -1: not wanted.
        sizes: in bytes, that its values may take.
        heads: what stands before values, by their size.
        widths: how long that is; ``width``: if all but no values are behind equally much, else 0; ``less``: how much
            shorter it is before none.
        is_long: whether its values are numbers that are copied once only, so that a match tells where they are.
    """

    def __init__(self, key: bytes, tag: int, number: int, sizes: Sequence[int]) -> None:
        self.key, self.tag, self.number, self.sizes = key, tag, number, sizes
        self.heads = {size: _head(key, tag, size) for size in sizes}
        self.widths = {size: len(found) for size, found in self.heads.items()}
        widths = {width for size, width in self.widths.items() if size} or set(self.widths.values())
        self.width = widths.pop() if len(widths) == 1 else 0
        self.less = self.width - self.widths.get(0, self.width)
        self.is_long = tag == FLOATS and number >= 0 and len(sizes) == 1 and sizes[0] >= LEAST_COPIED

    def pattern(self) -> bytes:
        """Of its entries behind their tags; the values are a group."""
        heads = [re.escape(found[1:]) for found in self.heads.values()]
        if self.is_long:
            return b"%s().{%d}" % (heads[0], self.sizes[0])
        if len(heads) == 1:
            return b"%s(.{%d})" % (heads[0], self.sizes[0])
        values = _values(self.sizes)
        if any(found[1] >= SHORT for found in self.heads.values()):
            return b"(?:%s)(%s)" % (b"|".join(heads), values)
        # The first length comes first, as one of a class, for that rules most entries of other keys out at once.
        shared = field(ENTRY, self.key) + bytes((FEATURE,))
        first = b"".join(re.escape(found[1:2]) for found in self.heads.values())
        ends = [
            b"%s(?<=%s.{%d})" % (re.escape(found[2 + len(shared) :]), re.escape(found[1:2]), len(found) - 2)
            for found in self.heads.values()
        ]
        return b"[%s]%s(?:%s)(%s)" % (first, re.escape(shared), b"|".join(ends), values)

    def taken(self, column: Sequence[bytes | None]) -> int:
        """The bytes of entries with these values; None: there is no entry."""
        if self.is_long:
            return (len(column) - column.count(None)) * (self.width + self.sizes[0])
        try:
            values: Sequence[bytes] = column  # type: ignore[assignment]
            held = len(b"".join(values))
        except TypeError:
            values = [value for value in column if value is not None]
            held = len(b"".join(values))
        if self.width:
            return held + len(values) * self.width - (values.count(b"") * self.less if self.less else 0)
        return held + sum(self.widths[len(value)] for value in values)


def _head(key: bytes, tag: int, size: int) -> bytes:
    """What stands in an entry before values of so many bytes."""
    tags = {SKIPPED: (FEATURE,), LISTED: (FEATURE, TEXTS)}.get(tag, (FEATURE, tag, ENTRY))
    if tag in (FLOATS, INTEGERS) and not size:  # a list without values
        tags = tags[:2]
    made = b""
    for each in reversed(tags):
        made = head(each, len(made) + size) + made
    made = field(ENTRY, key) + made
    return head(ENTRY, len(made) + size) + made


def _values(sizes: Sequence[int]) -> bytes:
    """A pattern of as many bytes as the length before them says, which is one of these ascending sizes."""
    few = len(sizes) <= FEW_SIZES
    found = [b"(?<=%s).{%d}" % (re.escape(varint(size)), size) for size in reversed(sizes) if few or size >= SHORT]
    if few:
        return b"|".join(found)
    if found:
        short = [size for size in sizes if size < SHORT]
        return b"|".join([*found, _values(short)] if short else found)
    middle = len(sizes) // 2
    low = b"[%s]" % b"".join(re.escape(bytes((size,))) for size in sizes[:middle])
    return b"(?<=%s)(?:%s)|%s" % (low, _values(sizes[:middle]), _values(sizes[middle:]))


class _Lengths(dict[int, bytes]):
    """What an Example of so many bytes says its Features take."""

    def __missing__(self, size: int) -> bytes:
        left = inside(size)
        found = varint(left) if left >= 0 else b""
        if len(self) < MOST_KEPT:
            self[size] = found
        return found


LENGTHS = _Lengths()


class _ExamplePattern:
    """One regular expression for whole records."""

    def __init__(self, features: Sequence[_Feature], missing: set[bytes], ordered: bool) -> None:
        """``missing``: keys that some records lack; ``ordered``: all have theirs in the order of these features."""
        self._features, self._ordered = features, ordered
        found = [(each.key in missing, b"\n" + each.pattern()) for each in features]
        if ordered:
            entries = b"".join(b"(?:%s)?" % pattern if may_miss else pattern for may_miss, pattern in found)
        else:
            entries = b"(?:\n(?:%s))*" % b"|".join(pattern[1:] for _, pattern in found)
        self._match = re.compile(b"\n" + LENGTH + entries, re.DOTALL).fullmatch

    def columns(
        self, records: Sequence[bytes], wanted: Mapping[bytes, DType], keys: FeatureKeys, memory: Memory
    ) -> tuple[dict[bytes, RecordColumn] | None, int]:
        """What is in these records, None where another way is to read them; and how many did not match."""
        found = list(map(self._match, records))
        missed = [index for index, match in enumerate(found) if match is None]
        if 2 * len(missed) > len(records):
            return None, len(missed)
        matches = [match for match in found if match is not None]
        read = [match.string for match in matches] if missed else records
        lengths, *groups = zip(*[match.groups() for match in matches], strict=True)
        if lengths != tuple(map(LENGTHS.__getitem__, map(len, read))):
            return None, len(records)
        if not self._ordered and not self._is_all(lengths, groups, sum(map(len, read))):
            return None, len(records)
        made: dict[bytes, RecordColumn] = {}
        values: list[Sequence[Value]] = [(None,) * len(read)] * len(wanted)
        for number, (feature, group) in enumerate(zip(self._features, groups, strict=True), 2):
            if feature.number >= 0:
                if feature.is_long and not missed and None not in group:
                    made[feature.key] = _gathered(feature, matches, number, memory)
                elif feature.is_long:
                    size = feature.sizes[0]
                    values[feature.number] = [
                        None if begin < 0 else match.string[begin : begin + size]
                        for match, begin in [(match, match.start(number)) for match in matches]
                    ]
                else:
                    values[feature.number] = _texts(group) if feature.tag == LISTED else group
        if missed:
            rows = [row_of(records[index], keys, [None] * len(wanted)) for index in missed]
            more = [row for row in rows if row is not None]
            if len(more) < len(rows):
                return None, len(missed)
            values = [
                _merged(column, missed, each) for column, each in zip(values, zip(*more, strict=True), strict=True)
            ]
        alike = {feature.key for feature in self._features if len(feature.sizes) == 1 and not missed}
        for (key, dtype), column in zip(wanted.items(), values, strict=True):
            if key not in made:
                made[key] = column_of(column, dtype, alike=key in alike)
        return made, len(missed)

    def _is_all(self, lengths: Sequence[bytes], columns: Sequence[Sequence[bytes | None]], total: int) -> bool:
        """Whether the values and what stands before them are all that the records hold: no key came twice."""
        taken = len(b"".join(lengths)) + len(lengths)
        for feature, column in zip(self._features, columns, strict=True):
            taken += feature.taken(column)
        return taken == total


Memory: TypeAlias = Callable[[bytes, int, int, Any], Array]
"""What gives an array of any shape and content for a feature's values: of a key, how many records there are, how many
values each has, and their NumPy type."""


def _gathered(feature: _Feature, matches: Sequence[re.Match[bytes]], group: int, memory: Memory) -> RecordColumn:
    """A feature of as many numbers in each record, copied from there."""
    size = feature.sizes[0]
    reserve((len(matches), size), np.uint8)
    numbers = memory(feature.key, len(matches), size // 4, np.dtype("<f4"))
    place, taken = 0, numbers.data.cast("B")
    for match in matches:
        begin = match.start(group)
        taken[place : place + size] = match.string[begin : begin + size]
        place += size
    return RecordColumn(numbers.astype(np.float32, copy=False), size // 4, len(matches))


def _texts(column: Sequence[bytes | None]) -> list[Value]:
    return [None if value is None else list_of_texts(value, 0, len(value)) for value in column]


def _merged(column: Sequence[Value], places: Sequence[int], more: Sequence[Value]) -> list[Value]:
    """The column with more values at these places, which ascend."""
    made = list(column)
    for place, value in zip(places, more, strict=True):
        made.insert(place, value)
    return made


def _spread(seen: Set[int], step: int) -> list[int]:
    """Sizes that texts or lists may have where these were seen; where all are alike, they stay so."""
    low, high = min(seen), max(seen)
    beyond = (high - low) // SPREAD
    low, high = max(low - beyond, 0), high + beyond
    if len(seen) == 1 or (high >= SHORT and high - low > MOST_LONG):
        return sorted(seen)
    return [*range(low - low % step, high + 1, step)]


class _Learned:
    """What is known of records with the same wanted features."""

    def __init__(self, wanted: Mapping[bytes, DType]) -> None:
        self.wanted = dict(wanted)
        self.keys = FeatureKeys(wanted)
        self.pattern: _ExamplePattern | None = None
        self.unread = 0  # records that no pattern has read since the last one was made
        self.due = FIRST_LEARNED
        self._sizes: dict[bytes, set[int]] = {}
        self._tags: dict[bytes, int] = {}
        self._order: list[bytes] = []
        self._present: dict[bytes, int] = {}
        self._count = 0
        self._ordered = True
        self._lock = Lock()

    def read(self, records: Sequence[bytes], memory: Memory) -> dict[bytes, RecordColumn] | None:
        """The wanted features, if a pattern is known that reads them; learns one where many records had none."""
        found, missed = None, len(records)
        pattern = self.pattern  # other threads may drop it meanwhile, or learn another one
        if pattern is not None:
            found, missed = pattern.columns(records, self.wanted, self.keys, memory)
            if found is None and self.pattern is pattern:
                self.pattern = None
        self.unread += missed
        if missed and self.unread >= self.due and self._lock.acquire(blocking=False):
            try:
                self.unread, self.due = 0, 4 * self.due
                self.pattern = self._learn(records[:MOST_SURVEYED])
            finally:
                self._lock.release()
        return found

    def _learn(self, records: Sequence[bytes]) -> _ExamplePattern | None:
        try:
            for record in records:
                self._survey(record)
        except (WireError, IndexError):
            return None
        features = []
        for key in self._order:
            tag, sizes = self._tags[key], self._sizes[key]
            number = list(self.wanted).index(key) if key in self.wanted else -1
            features.append(_Feature(key, tag, number, _spread(sizes, 4 if tag == FLOATS else 1)))
        forms = sum(len(each.sizes) for each in features)
        longest = max(sum(size >= SHORT for size in each.sizes) for each in features)
        if forms > MOST_FORMS or longest > MOST_LONG:
            return None
        missing = {key for key in self._order if self._present[key] < self._count}
        return _ExamplePattern(features, missing, self._ordered)

    def _survey(self, record: bytes) -> None:
        """Adds the keys and lengths of a record's entries.

        Raises:
            WireError, IndexError: they are not as encoders write them.
        """
        place = read_varint(record, 1, len(record))[1]
        keys = []
        for headers, _, more in self.keys.of(record):
            size, inner = read_varint(record, place + 1, len(record))
            which = headers
            if not record.startswith(which[size][0], place) or self._tags.get(which.key) == LISTED:
                if more is None or not record.startswith(more[size][0], place):
                    raise WireError(place, "an entry of another kind")
                which = more
            _, start, length = which[size]
            if length > start or which[size][0] == _head(which.key, which.tag, 0):
                self._note(which.key, which.tag, length - start)
            keys.append(which.key)
            place = inner + size
        self._count += 1
        following = iter(self._order)
        self._ordered = self._ordered and all(key in following for key in keys)

    def _note(self, key: bytes, tag: int, size: int) -> None:
        if key not in self._tags:
            self._order.append(key)
            self._present[key] = 0
        elif self._tags[key] != tag:  # lists of texts, where all had one so far
            more = headers_of(key, LISTED)
            self._sizes[key] = {len(head(ENTRY, each)) + each for each in self._sizes[key]}
            tag = more.tag
        self._tags[key] = tag
        self._sizes.setdefault(key, set()).add(size)
        self._present[key] += 1


@lru_cache(maxsize=64)
def _learned(wanted: tuple[tuple[bytes, DType], ...]) -> _Learned:
    return _Learned(dict(wanted))


def columns_by_pattern(
    records: Sequence[bytes], wanted: Mapping[bytes, DType], memory: Memory
) -> dict[bytes, RecordColumn] | None:
    """The wanted features of a batch; None where it is to be read in another way, as the first batches are."""
    if not wanted:
        return None
    try:
        return _learned(tuple(wanted.items())).read(records, memory)
    except (WireError, IndexError, IrregularError):
        return None
