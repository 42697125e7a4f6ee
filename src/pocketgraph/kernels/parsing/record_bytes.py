"""Many places of one array of bytes read at once: lengths, ranges, varints and texts of encoded records."""

from __future__ import annotations

import numpy as np

from pocketgraph.kernels.arrays import Array, reserve, strings
from pocketgraph.kernels.parsing.example_records import ENTRY
from pocketgraph.protobuf.wire import WireError, read_varint

FEW_LISTS = 128  # lists of texts, up to which one after the other is quicker
MOST_TEXTS = 64  # in a feature, which are found one after the other
PADDING = 512  # zeros behind the last record, so that reading ahead stays inside


class IrregularError(Exception):
    """The records are not as encoders write them."""


def joined(data: bytes, content: Array, begin: Array, size: Array) -> Array:
    """The bytes of these ranges, one after the other."""
    if not len(size) or not size.any():
        return np.empty(0, np.uint8)
    reserve((int(size.sum()),), np.uint8)
    length = int(size[0])
    if length and all_true(size == length):
        return np.asarray(windows(content, length)[begin].reshape(-1))
    ranges = zip(begin.tolist(), (begin + size).tolist(), strict=True)
    return np.frombuffer(bytearray().join([data[a:b] for a, b in ranges]), np.uint8)


def varints(packed: Array, sizes: Array) -> tuple[Array, Array]:
    """The int64 numbers of varints, and how many are in each of the ranges of so many bytes."""
    if not len(packed):
        return np.empty(0, np.int64), np.zeros(len(sizes), np.int64)
    is_last = packed < 0x80
    borders = np.cumsum(sizes)
    expect(is_last[borders[sizes > 0] - 1])
    numbers = packed & 0x7F
    if is_last.all():
        return numbers.astype(np.int64), sizes
    last = np.flatnonzero(is_last)
    before = packed[:-1]
    if not (packed[1:] & before & 0x80).any():  # none takes more than two bytes
        follows = before >> 7
        pairs = packed.astype(np.uint16)
        pairs[1:] <<= follows * np.uint8(7)
        pairs[1:] |= numbers[:-1] * follows
        values = pairs.take(last).astype(np.int64)
    else:
        values = _long_varints(numbers, last)
    counts = np.searchsorted(last, borders)  # a border is behind the last byte of its last number
    counts[1:] -= counts[:-1].copy()
    return values, counts


def _long_varints(numbers: Array, last: Array) -> Array:
    """The int64 numbers of varints whose last bytes lie there, of seven bits in each byte."""
    first = np.empty_like(last)
    first[0], first[1:] = 0, last[:-1] + 1
    length = last - first + 1
    longest = int(length.max())
    if longest > 10:
        raise IrregularError
    values = numbers[first].astype(np.uint64)
    reserve(values.shape, np.uint64)
    for place in range(1, longest):
        some = np.flatnonzero(length > place)
        values[some] |= numbers[first[some] + place].astype(np.uint64) << np.uint64(7 * place)
    return values.view(np.int64)


def texts(data: bytes, content: Array, begin: Array, end: Array) -> tuple[Array, Array]:
    """The texts of lists, and how many each has."""
    if len(begin) <= FEW_LISTS:
        lists = [list_of_texts(data, a, b) for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
        flat = [text for each in lists for text in each]
        return strings(flat, (len(flat),)), np.fromiter(map(len, lists), np.int64, len(lists))
    counts = np.zeros(len(begin), np.int64)
    places = begin.copy()
    rows = np.flatnonzero(places < end)
    found: list[tuple[Array, Array, Array]] = []
    while len(rows):
        if len(found) == MOST_TEXTS:
            raise IrregularError
        size, start = sizes_at(content, places[rows] + 1)
        stop = start + size
        expect((content[places[rows]] == ENTRY) & (stop <= end[rows]))
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


def list_of_texts(data: bytes, place: int, end: int) -> list[bytes]:
    """The texts of a list that lies there.

    Raises:
        WireError: it holds something else.
    """
    found: list[bytes] = []
    while place < end:
        size, start = data[place + 1], place + 2
        if size > 127:
            size, start = read_varint(data, place + 1, end)
        if data[place] != ENTRY or start + size > end:
            raise WireError(place, "a list of another kind of element")
        place = start + size
        found.append(data[start:place])
    return found


def sizes_at(content: Array, places: Array) -> tuple[Array, Array]:
    """The lengths (varints of up to four bytes) at these places, and the places behind them."""
    byte = content[places]
    size = byte.astype(np.int64)
    behind = places + 1
    if byte.tobytes().isascii():
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
    raise IrregularError


def windows(content: Array, length: int) -> Array:
    """(places, length): what lies at each place, without copying."""
    found: Array = np.ndarray((len(content) - length + 1, length), np.uint8, content, 0, (1, 1))
    return found


def expect(holds: Array) -> None:
    if not all_true(holds):
        raise IrregularError


def all_true(holds: Array) -> bool:
    """``holds.all()`` in a third of its time, where there are few."""
    return int(np.count_nonzero(holds)) == holds.size
