"""The wire format against examples from its public description and against the protobuf library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.formats.protos import message
from pocketgraph.protobuf import wire


def test_the_example_of_the_public_description() -> None:
    assert list(wire.fields(b"\x08\x96\x01", 0, 3)) == [(0, 1, wire.VARINT, 150, 3)]
    assert list(wire.fields(b"\x12\x07testing", 0, 9)) == [(0, 2, wire.LEN, 2, 9)]


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_number_survives(number: int) -> None:
    encoded = wire.varint(number)
    assert wire.read_varint(encoded, 0, len(encoded)) == (number, len(encoded))


def test_negative_numbers_take_ten_bytes() -> None:
    assert wire.varint(-1) == b"\xff" * 9 + b"\x01"
    assert wire.signed(wire.read_varint(wire.varint(-5), 0, 10)[0]) == -5
    assert wire.int32(0xFFFF_FFFE) == -2


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50))
@settings(max_examples=50, deadline=None)
def test_packed_numbers_are_what_one_by_one_reading_gives(numbers: list[int]) -> None:
    encoded = b"xy" + b"".join(map(wire.varint, numbers))
    assert wire.packed_varints(encoded, 2, len(encoded)).tolist() == numbers


@pytest.mark.parametrize(
    ("encoded", "what"),
    [
        (b"\x08", "cut off"),
        (b"\x08\xff", "cut off"),
        (b"\x08" + b"\xff" * 11, "ten bytes"),
        (b"\x0a\x05abc", "3 are left"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "0 are left"),
        (b"\x0d\x00\x00", "cut off"),
        (b"\x09\x00\x00\x00\x00", "cut off"),
        (b"\x0b", "wire type 3"),
        (b"\x00\x00", "number 0"),
    ],
)
def test_damage_is_named(encoded: bytes, what: str) -> None:
    with pytest.raises(wire.WireError, match=what):
        list(wire.fields(encoded, 0, len(encoded)))


@pytest.mark.parametrize("encoded", [b"\x80", b"\x80\x80", b"\x01\xff", b"\xff" * 11 + b"\x01"])
def test_damaged_packed_numbers_are_named(encoded: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.packed_varints(encoded, 0, len(encoded))


def test_fields_are_those_that_the_protobuf_library_writes() -> None:
    made = message("tensorflow.VersionDef")(producer=27, min_consumer=-3, bad_consumers=[1, 300])
    parts = [wire.number_field(1, 27), wire.number_field(2, -3), wire.bytes_field(3, wire.varint(1) + wire.varint(300))]
    assert b"".join(parts) == made.SerializeToString()


def test_a_float_too_large_for_four_bytes_becomes_infinite() -> None:
    assert wire.float_bytes(1e39) == np.float32("inf").tobytes()
    assert wire.float_bytes(-1e39) == np.float32("-inf").tobytes()
