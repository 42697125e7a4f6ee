"""The three small messages of a V2 checkpoint's index: header, entry and slice.

Field numbers are those of tensorflow/core/protobuf/tensor_bundle.proto and framework/tensor_slice.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from pocketgraph.formats.tensor_proto import dimensions, shape_bytes
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import FIXED32, LEN, VARINT

Extent = tuple[int, int]
"""(start, length) of a slice in one dimension; length -1 means all of it."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the index says of the whole checkpoint."""

    num_shards: int = 0
    big_endian: bool = False
    min_consumer: int = 0

    @staticmethod
    def decode(data: bytes) -> Header:
        """Raises WireError when the bytes are no header."""
        num_shards = endianness = min_consumer = 0
        for _, number, kind, value, stop in wire.fields(data, 0, len(data)):
            if (number, kind) == (1, VARINT):
                num_shards = wire.int32(value)
            elif (number, kind) == (2, VARINT):
                endianness = value
            elif (number, kind) == (3, LEN):
                min_consumer = wire.int32(wire.numbers(data, value, stop).get(2, 0))
        return Header(num_shards, endianness == 1, min_consumer)

    def encode(self) -> bytes:
        """Little-endian data, version {producer: 1}."""
        return wire.number_field(1, self.num_shards) + wire.bytes_field(3, wire.number_field(1, 1))


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """Where one tensor lies, or into which slices it was cut.

    Attributes:
        dtype: the DataType enum number.
        shape: the sizes; -1 stands for an unknown one, which no sound entry has.
        shard, offset, size: bytes ``offset`` to ``offset + size`` of data file ``shard``.
        crc32c: masked checksum of those bytes.
        slices: for a partitioned tensor each slice's extents; the bytes then lie under the slices' own keys.
    """

    dtype: int
    shape: tuple[int, ...]
    shard: int = 0
    offset: int = 0
    size: int = 0
    crc32c: int = 0
    slices: tuple[tuple[Extent, ...], ...] = ()

    @staticmethod
    def decode(data: bytes) -> BundleEntry:
        """Raises WireError when the bytes are no entry."""
        numbers: dict[int, int] = {}
        shape: list[int] | None = []
        slices: list[tuple[Extent, ...]] = []
        for _, number, kind, value, stop in wire.fields(data, 0, len(data)):
            if kind == VARINT:
                numbers[number] = value
            elif kind == FIXED32:
                numbers[number] = int.from_bytes(data[value:stop], "little")
            elif (number, kind) == (2, LEN):
                shape = dimensions(data, value, stop)
            elif (number, kind) == (7, LEN):
                slices.append(slice_extents(data, value, stop))
        return BundleEntry(
            wire.int32(numbers.get(1, 0)), (-1,) if shape is None else tuple(shape), wire.int32(numbers.get(3, 0)),
            wire.signed(numbers.get(4, 0)), wire.signed(numbers.get(5, 0)), numbers.get(6, 0), tuple(slices),
        )  # fmt: skip

    def encode(self) -> bytes:
        """As TensorFlow writes it: fields in order, zeros left out, the shape always there."""
        assert not self.slices
        out = wire.number_field(1, self.dtype) + wire.bytes_field(2, shape_bytes(self.shape))
        for number, value in ((3, self.shard), (4, self.offset), (5, self.size)):
            out += wire.number_field(number, value) if value else b""
        return out + (wire.varint(6 << 3 | FIXED32) + self.crc32c.to_bytes(4, "little") if self.crc32c else b"")


def slice_extents(data: bytes, start: int, stop: int) -> tuple[Extent, ...]:
    """A TensorSliceProto; an extent without a length is the whole dimension."""
    extents = []
    for _, number, kind, value, end in wire.fields(data, start, stop):
        if (number, kind) == (1, LEN):
            parts = wire.numbers(data, value, end)
            extents.append((wire.signed(parts.get(1, 0)), wire.signed(parts[2]) if 2 in parts else -1))
    return tuple(extents)
