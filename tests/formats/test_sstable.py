"""The table container, its compression and its key code, against vectors made by hand."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.errors import FormatError
from pocketgraph.formats import crc32c
from pocketgraph.formats.checkpoints import ordered_code, snappy, sstable

KEYS = [b"", *(f"layer_{i:04d}/weights".encode() for i in range(500)), b"z"]


def table(data: bytes) -> sstable.SortedTable:
    return sstable.SortedTable(memoryview(data), "some.index")


def read(data: bytes) -> dict[bytes, bytes]:
    return {key: bytes(value) for key, value in table(data)}


def test_crc32c_has_the_published_check_value() -> None:
    assert crc32c.checksum(b"123456789") == 0xE3069283  # RFC 3720, appendix B.4 uses the same polynomial
    assert crc32c.checksum(b"6789", crc32c.checksum(b"12345")) == 0xE3069283
    assert crc32c.checksum(b"") == 0
    assert crc32c.masked(0) == 0xA282EAD8


def test_an_empty_table_is_two_empty_blocks_and_a_footer() -> None:
    data = sstable.encode([])
    empty_block = bytes.fromhex("00000000 01000000 00".replace(" ", ""))
    assert data.startswith(empty_block)
    assert data.endswith((0xDB4775248B80FB57).to_bytes(8, "little"))
    assert read(data) == {}


def test_entries_come_back_in_order() -> None:
    entries = [(key, key * 3) for key in KEYS]
    data = sstable.encode(entries)
    assert list(read(data).items()) == entries
    assert table(data).get(b"layer_0123/weights") == b"layer_0123/weights" * 3
    assert table(data).get(b"layer_0123") is None
    assert table(data).get(b"zz") is None


def test_large_tables_have_many_blocks() -> None:
    entries = [(f"{i:06d}".encode(), bytes(1000)) for i in range(1000)] + [(b"9", bytes(600_000)), (b"91", b"x")]
    data = sstable.encode(entries)
    assert list(read(data).items()) == entries
    assert len(table(data)._handles) > 3
    assert table(data).get(b"000999") == bytes(1000)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.binary(max_size=12), st.binary(max_size=40), max_size=60))
def test_any_table_comes_back(entries: dict[bytes, bytes]) -> None:
    assert read(sstable.encode(sorted(entries.items()))) == entries


def test_every_flipped_byte_is_found() -> None:
    data = sstable.encode([(key, b"value") for key in KEYS[:40]])
    whole = read(data)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x41
        try:
            assert read(bytes(damaged)) == whole, position  # padding in the footer means nothing
        except FormatError:
            continue


def test_every_cut_is_found() -> None:
    data = sstable.encode([(key, b"value") for key in KEYS[:40]])
    for length in range(len(data)):
        with pytest.raises(FormatError):
            read(data[:length])


def test_other_files_are_told_apart() -> None:
    with pytest.raises(FormatError, match="too short"):
        table(b"short")
    with pytest.raises(FormatError, match="bad magic number"):
        table(bytes(100))


def block(contents: bytes, kind: int) -> bytes:
    return contents + bytes([kind]) + struct.pack("<I", crc32c.masked(crc32c.checksum(contents + bytes([kind]))))


def footer(index_at: int, index_size: int) -> bytes:
    from pocketgraph.protobuf.wire import varint

    return (varint(0) + varint(0) + varint(index_at) + varint(index_size)).ljust(40, b"\0") + struct.pack(
        "<Q", sstable.MAGIC
    )


def entry_block(key: bytes, value: bytes) -> bytes:
    return bytes([0, len(key), len(value)]) + key + value + struct.pack("<II", 0, 1)


def test_compressed_blocks_are_read() -> None:
    plain = entry_block(b"key", b"abcdabcdabc")
    # One literal of all but the repetition, then a copy of 7 bytes from 4 back, then the rest as a literal.
    head, tail = plain[: 3 + 3 + 4], plain[3 + 3 + 11 :]
    packed = bytes([len(plain), (len(head) - 1) << 2]) + head + bytes([(7 - 4) << 2 | 1, 4])
    packed += bytes([(len(tail) - 1) << 2]) + tail
    assert snappy.decompress(packed) == plain
    first = block(packed, 1)
    index = entry_block(b"l", bytes([0, len(packed)]))
    assert read(first + block(index, 0) + footer(len(first), len(index))) == {b"key": b"abcdabcdabc"}


def test_an_unknown_compression_is_refused() -> None:
    first = block(entry_block(b"key", b"v"), 7)
    index = entry_block(b"l", bytes([0, len(first) - 5]))
    with pytest.raises(FormatError, match="bad block type 7"):
        read(first + block(index, 0) + footer(len(first), len(index)))


def test_keys_out_of_order_are_refused() -> None:
    two = bytes([0, 1, 1]) + b"b1" + bytes([0, 1, 1]) + b"a2" + struct.pack("<II", 0, 1)
    first, index = block(two, 0), entry_block(b"l", bytes([0, len(two)]))
    with pytest.raises(FormatError, match="out of order"):
        read(first + block(index, 0) + footer(len(first), len(index)))


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        (b"\x00", b""),
        (b"\x03\x08abc", b"abc"),
        (b"\x0a\x00a\x22\x01\x00", b"a" * 10),  # a two-byte offset, overlapping itself
        (b"\x05\x00a\x0f\x01\x00\x00\x00", b"a" * 5),  # a four-byte offset
        (b"\x46\xf0\x45" + b"y" * 70, b"y" * 70),  # a literal whose length takes a byte
    ],
)
def test_snappy_elements(packed: bytes, plain: bytes) -> None:
    assert snappy.decompress(packed) == plain


@pytest.mark.parametrize(
    "packed",
    [b"", b"\x05\x08abc", b"\x03\x20abc", b"\x04\x00a\x0d\x02", b"\xff\xff\xff\xff\x0f\x00a", b"\x80", b"\x09\x00a"],
)  # fmt: skip
def test_damaged_snappy_is_refused(packed: bytes) -> None:
    with pytest.raises(FormatError):
        snappy.decompress(packed, "some.index")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60))
def test_snappy_never_crashes(packed: bytes) -> None:
    with contextlib.suppress(FormatError):
        assert len(snappy.decompress(packed)) <= 64 * len(packed)


def test_slice_keys() -> None:
    # Verified against files that TensorFlow wrote.
    assert ordered_code.slice_key("p", [(0, 4), (0, 4)]) == bytes.fromhex("0070000101028084 8084".replace(" ", ""))
    assert ordered_code.slice_key("a", [(0, -1), (0, -1)]) == bytes.fromhex("00610001 0102 807f 807f".replace(" ", ""))
    assert ordered_code.slice_key("s", []) == bytes.fromhex("0073000100")
    assert ordered_code.signed(100) == bytes.fromhex("c064")
    assert ordered_code.text(b"\x00\xff_") == b"\x00\xff\xff\x00_\x00\x01"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2))
def test_the_code_of_numbers_keeps_their_order(pair: list[int]) -> None:
    low, high = sorted(pair)
    assert (ordered_code.signed(low) < ordered_code.signed(high)) == (low < high)
