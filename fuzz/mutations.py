"""Changes of inputs that keep what a format needs to be read on: lengths of protobuf fields, checksums of tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from pocketgraph.errors import PocketgraphError
from pocketgraph.formats.checkpoints import sstable
from pocketgraph.protobuf import wire

NUMBERS = (0, 1, 2, 7, 8, 127, 128, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, -1)
DEEPEST = 8
Mutate = Callable[[bytes, int], bytes]
"""Changes of bytes alone; the second argument is the most bytes."""


def bytes_changed(data: bytes, most: int, rng: random.Random) -> bytes:
    """One to four changes of bytes: flipped, replaced, inserted, removed, doubled."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        span = min(rng.choice((1, 1, 2, 4, 8, 32)), len(changed) - at)
        way = rng.randrange(6)
        if way == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            changed[at : at + span] = rng.randbytes(span)
        elif way == 2:
            changed[at : at + 4] = (rng.choice(NUMBERS) & 0xFFFF_FFFF).to_bytes(4, rng.choice(("little", "big")))
        elif way == 3:
            del changed[at : at + span]
        elif way == 4:
            changed[at:at] = changed[at : at + span]
        else:
            changed[at:at] = rng.randbytes(rng.choice((1, 1, 2, 4)))
    return bytes(changed[:most])


def message_changed(data: bytes, most: int, rng: random.Random, mutate: Mutate) -> bytes:
    """A protobuf message with one field changed somewhere inside, and the lengths around it put right."""
    found = _changed(data, 0, rng, mutate)
    return found if len(found) <= most else mutate(data, most)


def _changed(data: bytes, depth: int, rng: random.Random, mutate: Mutate) -> bytes:
    try:
        parts = list(wire.fields(data, 0, len(data)))
    except wire.WireError:
        parts = []
    if not parts:
        return mutate(data, max(len(data) * 2, 16))
    at, number, kind, value, stop = rng.choice(parts)
    way = rng.randrange(12)
    if way == 0:
        return data[:at] + data[stop:]
    if way == 1:
        return data[:stop] + data[at:stop] * rng.choice((1, 1, 2, 8)) + data[stop:]
    if way == 2:
        other = rng.choice(parts)
        return data[:at] + data[other[0] : other[4]] + data[stop:]
    if way == 3:
        number = rng.choice((number + 1, max(number - 1, 1), rng.randint(1, 32)))
    if kind == wire.LEN:
        inside = data[value:stop]
        if way != 3:
            inside = (
                _changed(inside, depth + 1, rng, mutate)
                if depth < DEEPEST and way < 11
                else mutate(inside, 64 + 2 * len(inside))
            )
        field = wire.bytes_field(number, inside)
    elif kind == wire.VARINT:
        field = wire.number_field(number, value if way == 3 else rng.choice((*NUMBERS, value + 1, value - 1)))
    else:
        field = wire.varint(number << 3 | kind) + rng.randbytes(stop - value)
    return data[:at] + field + data[stop:]


def table_changed(data: bytes, most: int, rng: random.Random, mutate: Mutate) -> bytes:
    """A table of a checkpoint with an entry changed, moved or left out, and with right checksums."""
    try:
        entries = {key: bytes(value) for key, value in sstable.SortedTable(memoryview(data))}
    except PocketgraphError:
        return mutate(data, most)
    if not entries or rng.random() < 0.05:
        return mutate(data, most)
    key = rng.choice(list(entries))
    way = rng.randrange(16)
    if way == 0:
        del entries[key]
    elif way == 1:
        entries[mutate(key, 64)] = entries.pop(key)
    elif way == 2:
        entries[key] = entries[rng.choice(list(entries))]
    elif way == 3:
        entries[mutate(key, 64)] = entries[key]
    else:
        entries[key] = message_changed(entries[key], most, rng, mutate)
    return _within(sstable.encode(sorted(entries.items())), most, data)


def _within(made: bytes, most: int, given: bytes) -> bytes:
    return made if len(made) <= most else given


def dictionary(words: Iterable[bytes]) -> str:
    """The words as libFuzzer reads them."""
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words if word)
