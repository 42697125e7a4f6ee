"""The sorted string table: the container of V2 checkpoint indexes and of V1 checkpoints.

A file is data blocks, a metaindex block (empty here), an index block and a 48-byte footer. Every block is followed by
its compression type and a masked CRC-32C. Keys are sorted bytewise and stored without the prefix they share with the
key before. Source: leveldb's doc/table_format.md; TensorFlow's tsl/lib/io/{format,block,table_builder}.cc use the same
format with a block size of 256 KiB.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from pocketgraph.errors import FormatError
from pocketgraph.formats import crc32c
from pocketgraph.formats.checkpoints import snappy
from pocketgraph.formats.files import check_length
from pocketgraph.protobuf.wire import varint

FOOTER_BYTES = 48
MAGIC = 0xDB4775248B80FB57
BLOCK_BYTES = 262144
RESTART_INTERVAL = 16
_TRAILER_BYTES = 5


class SortedTable:
    """A table over bytes that are already in memory or mapped.

    Values of uncompressed blocks are views of those bytes; a block's checksum is checked when the block is visited.
    """

    def __init__(self, data: memoryview, where: str = "") -> None:
        """``where`` names the file in errors. Raises FormatError when the footer or the index block is wrong."""
        self._data = data
        self._where = where
        if len(data) < FOOTER_BYTES:
            raise self._error(
                f"the file is too short to be a table ({len(data)} bytes); it was cut off or is another file"
            )
        footer = data[-FOOTER_BYTES:]
        if int.from_bytes(footer[-8:], "little") != MAGIC:
            raise self._error("not an sstable (bad magic number); the file was cut off or is not a checkpoint")
        at = 0
        numbers = []
        for _ in range(4):
            number, at = self._varint(footer, at)
            numbers.append(number)
        self._visited: tuple[int, dict[bytes, memoryview]] = (-1, {})
        """A block that ``get`` visited: which, and what it holds."""
        index = self._block(numbers[2], numbers[3])
        self._last_keys: list[bytes] = []
        self._handles: list[tuple[int, int]] = []
        for key, value in self._entries(index):
            offset, at = self._varint(value, 0)
            size, _ = self._varint(value, at)
            self._last_keys.append(key)
            self._handles.append((offset, size))

    def __iter__(self) -> Iterator[tuple[bytes, memoryview]]:
        """Every (key, value), sorted by key. Raises FormatError where a block is damaged."""
        previous: bytes | None = None
        for offset, size in self._handles:
            for key, value in self._entries(self._block(offset, size)):
                if previous is not None and key <= previous:
                    raise self._error(f"keys are out of order at {key!r}")
                previous = key
                yield key, value

    def get(self, key: bytes) -> memoryview | None:
        """The value of one key, or None; visits one block, unless the key before was in it too."""
        place = bisect_left(self._last_keys, key)
        if place == len(self._handles):
            return None
        visited = self._visited
        if visited[0] != place:
            visited = self._visited = place, dict(self._entries(self._block(*self._handles[place])))
        check_length(self._data.obj, len(self._data), self._where)
        return visited[1].get(key)

    def _block(self, offset: int, size: int) -> memoryview:
        if offset + size + _TRAILER_BYTES > len(self._data) - FOOTER_BYTES:
            raise self._error(f"bad block handle: bytes {offset} to {offset + size} are past the end")
        check_length(self._data.obj, len(self._data), self._where)
        checked = self._data[offset : offset + size + 1]
        (stored,) = struct.unpack_from("<I", self._data, offset + size + 1)
        if crc32c.masked(crc32c.checksum(checked)) != stored:
            raise self._error(f"block checksum mismatch at offset {offset}; the file is damaged, copy it again")
        block = checked[:size]
        if checked[size] == 0:
            return block
        if checked[size] == 1:
            return memoryview(snappy.decompress(block, self._where))
        raise self._error(f"bad block type {checked[size]} at offset {offset}")

    def _entries(self, block: memoryview) -> Iterator[tuple[bytes, memoryview]]:
        """The entries of one block: varint shared, varint unshared, varint value length, key rest, value."""
        if len(block) < 4:
            raise self._error("a block is too short")
        (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
        end = len(block) - 4 - 4 * restarts
        if end < 0:
            raise self._error("a block has more restart points than bytes")
        at = 0
        key = b""
        while at < end:
            shared, at = self._varint(block, at)
            unshared, at = self._varint(block, at)
            length, at = self._varint(block, at)
            if shared > len(key) or at + unshared + length > end:
                raise self._error("a block entry runs past its end")
            key = key[:shared] + bytes(block[at : at + unshared])
            at += unshared
            yield key, block[at : at + length]
            at += length

    def _varint(self, data: memoryview, at: int) -> tuple[int, int]:
        value = shift = 0
        while at < len(data) and shift < 64:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise self._error("a number in the table does not end")

    def _error(self, what: str) -> FormatError:
        return FormatError(what, where=self._where)


def encode(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A table of these entries, uncompressed, byte for byte as TensorFlow's writer makes it.

    Args:
        entries: (key, value), keys strictly increasing.
    """
    out = bytearray()
    index = _Block(restart_interval=1)
    block = _Block()
    pending: tuple[bytes, bytes] | None = (
        None  # last key and handle of a block whose index entry waits for the next key
    )
    for key, value in entries:
        if len(key) + len(value) >= 2 * BLOCK_BYTES and not block.empty:
            pending = (block.last_key, _write_block(out, block))
            block = _Block()
        if pending is not None:
            index.add(_separator(pending[0], key), pending[1])
            pending = None
        assert block.empty or key > block.last_key
        block.add(key, value)
        if block.size >= BLOCK_BYTES:
            pending = (block.last_key, _write_block(out, block))
            block = _Block()
    if not block.empty:
        pending = (block.last_key, _write_block(out, block))
    metaindex = _write_block(out, _Block())
    if pending is not None:
        index.add(_successor(pending[0]), pending[1])
    footer = metaindex + _write_block(out, index)
    out += footer.ljust(FOOTER_BYTES - 8, b"\0") + MAGIC.to_bytes(8, "little")
    return bytes(out)


class _Block:
    """A block in the making."""

    def __init__(self, restart_interval: int = RESTART_INTERVAL) -> None:
        self.last_key = b""
        self.empty = True
        self._interval = restart_interval
        self._data = bytearray()
        self._restarts = [0]
        self._since_restart = 0

    @property
    def size(self) -> int:
        """Bytes of the finished block."""
        return len(self._data) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since_restart < self._interval:
            while shared < min(len(key), len(self.last_key)) and key[shared] == self.last_key[shared]:
                shared += 1
        else:
            self._restarts.append(len(self._data))
            self._since_restart = 0
        self._data += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        self.last_key = key
        self.empty = False
        self._since_restart += 1

    def finish(self) -> bytes:
        return bytes(self._data) + struct.pack(f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts))


def _write_block(out: bytearray, block: _Block) -> bytes:
    """Appends a block with its trailer and gives its handle."""
    contents = block.finish()
    handle = varint(len(out)) + varint(len(contents))
    stored = crc32c.masked(crc32c.checksum(contents + b"\0"))
    out += contents + b"\0" + struct.pack("<I", stored)
    return handle


def _separator(low: bytes, high: bytes) -> bytes:
    """A short key k with low <= k < high."""
    common = 0
    while common < min(len(low), len(high)) and low[common] == high[common]:
        common += 1
    if common < min(len(low), len(high)) and low[common] < 0xFF and low[common] + 1 < high[common]:
        return low[:common] + bytes([low[common] + 1])
    return low


def _successor(key: bytes) -> bytes:
    """A short key that is not below ``key``."""
    for position, byte in enumerate(key):
        if byte != 0xFF:
            return key[:position] + bytes([byte + 1])
    return key
